// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/detail/sum_long_segments.hpp>

#include <ferry/runtime/detail/launch.hpp>

#include "../../backends/enabled.hpp"

#include <cstdint>
#include <string>

namespace ferry::detail {

template <class Number, class Exec>
void add_sums_of_pieces(const Exec& exec, const std::string& label, const kernels::segment_finder& segments,
                        Number* sums, std::int64_t slots, std::int64_t width) {
  launch(exec, label, slots * width, kernels::add_pieces<Number>{segments, sums, fast_divisor(width)});
}

#define FERRY_ADD_SUMS(NUMBER, EXEC)              \
  template void add_sums_of_pieces<NUMBER, EXEC>( \
      const EXEC&, const std::string&, const kernels::segment_finder&, NUMBER*, std::int64_t, std::int64_t);
#define FERRY_ADD_SUMS_ON(EXEC) \
  FERRY_ADD_SUMS(float, EXEC)   \
  FERRY_ADD_SUMS(double, EXEC)  \
  FERRY_ADD_SUMS(std::uint64_t, EXEC)
FERRY_FOR_DEVICE_EXECUTION_SPACES(FERRY_ADD_SUMS_ON)
#undef FERRY_ADD_SUMS_ON
#undef FERRY_ADD_SUMS

}  // namespace ferry::detail
