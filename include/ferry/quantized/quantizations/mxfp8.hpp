// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/scaled_codes.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/fp8.hpp>

namespace ferry::quantization {

/// MXFP8 of the OCP microscaling specification with elements E4M3: see detail::microscaling for the formulas.
struct mxfp8 : detail::microscaling<detail::byte_codes<fp8_e4m3_t>, 8> {
  static constexpr const char* name = "mxfp8";  ///< see ferry::Quantization
};
static_assert(Quantization<mxfp8>);

}  // namespace ferry::quantization
