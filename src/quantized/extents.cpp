// SPDX-License-Identifier: Apache-2.0
#include <ferry/quantized/quantized_tensor.hpp>

#include <ferry/error.hpp>
#include <ferry/quantized/copy_rows.hpp>

#include <cmath>
#include <cstddef>
#include <string>

namespace ferry::detail {

void refuse_quantized_width(const std::string& label, std::size_t width, const char* quantization,
                            std::size_t block) {
  throw invalid_argument(joined(
      "ferry: rows of '", label, "' have ", width, " numbers, but rows of quantization::", quantization,
      " consist of blocks of ", block, "; choose a multiple and leave the last numbers unused"));
}

void require_factor(const std::string& label, float factor) {
  if (!(factor > 0.0f) || !std::isfinite(factor))
    throw invalid_argument(
        joined("ferry: the factor of '", label, "' can't be ", factor, ", must be positive and finite"));
}

void require_equal_factors(const untyped_array& source, float source_factor, const untyped_array& target,
                           float target_factor) {
  if (source_factor != target_factor)
    throw invalid_argument(joined("ferry::copy_rows: the factor of ", source.note().describe(), " is ",
                                  std::to_string(source_factor), ", that of ", target.note().describe(),
                                  " is ", std::to_string(target_factor), ", but codes move as they are"));
}

}  // namespace ferry::detail
