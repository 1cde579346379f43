// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/scaled_codes.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/fp4.hpp>

namespace ferry::quantization {

/// MXFP4 of the OCP microscaling specification: see detail::microscaling for the formulas. The
/// first number of a pair is in the lower half of its byte. A block with NaN has the codes 0 and 6.
struct mxfp4 : detail::microscaling<detail::pair_codes<fp4_e2m1_pair_t>, 2> {
  static constexpr const char* name = "mxfp4";  ///< see ferry::Quantization
};
static_assert(Quantization<mxfp4>);

}  // namespace ferry::quantization
