// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/scaled_codes.hpp>
#include <ferry/quantized/quantization.hpp>

#include <Kokkos_Macros.hpp>

namespace ferry::detail {

/// Codes of a byte with one float for the table and no scales of blocks:
///
///   value = code * table.scale(), in float
///   code  = value / table.scale(), to nearest even, at most the largest number of the codes
template <class Byte>
struct table_scaled : divided_codes<byte_codes<Byte>> {
  using scale_type = no_scale;
  static constexpr int block = 0;
  static constexpr bool has_tensor_scale = true;

  KOKKOS_FUNCTION static no_scale scale_of(const block_range&, float) { return {}; }
  KOKKOS_FUNCTION static float step_of(no_scale, float tensor_scale) { return tensor_scale; }
};

}  // namespace ferry::detail
