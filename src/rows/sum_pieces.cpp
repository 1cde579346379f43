// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/detail/sum_long_segments.hpp>

#include <ferry/runtime/detail/launch.hpp>

#include "../../backends/enabled.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>

namespace ferry::kernels {

/// The sums of long segments, from those of their pieces.
///
/// Device mapping: one thread per (row of the buffer, column), row-major. The threads of rows in which no
/// long segment begins end after three loads. The others read the second level of cache.
template <class Number>
struct add_pieces {
  static constexpr int under_way = 8;

  segment_finder segments;
  Number* sums;
  ferry::detail::fast_divisor width;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t slot = width.quotient(i);
    const auto [begin, end] = segments.long_segment(slot);
    if (begin == end || long_segments::slot(begin) != slot) return;
    const sum_pieces pieces(end - begin);
    Number* const column = sums + (i - slot * width.divisor());
    const auto sum_of = [&, first = begin](std::int64_t piece) {
      return column[long_segments::slot(first + piece * pieces.size) * width.divisor()];
    };
    Number total = sum_of(0);
    std::int64_t piece = 1;
    for (; piece + under_way <= pieces.count; piece += under_way) {
      Number next[under_way];
      for (int k = 0; k < under_way; ++k) next[k] = sum_of(piece + k);
      for (int k = 0; k < under_way; ++k) total += next[k];
    }
    for (; piece < pieces.count; ++piece) total += sum_of(piece);
    column[slot * width.divisor()] = total;
  }
};

}  // namespace ferry::kernels

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
