// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/scaled_codes.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/fp8.hpp>

namespace ferry::quantization {

/// MXFP8 of the OCP microscaling specification with elements E5M2: see detail::microscaling for the formulas.
struct mxfp8_e5m2 : detail::microscaling<detail::byte_codes<fp8_e5m2_t>, 15> {
  static constexpr const char* name = "mxfp8_e5m2";  ///< see ferry::Quantization
};
static_assert(Quantization<mxfp8_e5m2>);

}  // namespace ferry::quantization
