// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/backend.hpp>
#include <ferry/quantized/detail/rowwise_int8_code.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/tensor/detail/bit_cast.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::kernels {

/// Codes of a row, and its scale and offset: a packed tile of a device before it is decoded.
template <int Elements>
struct rowwise_int8_tile {
  packet<std::uint32_t, Elements / 4> codes;
  rowwise_int8_code code;

  KOKKOS_FORCEINLINE_FUNCTION static rowwise_int8_tile load(const std::byte* codes, const std::byte* tail) {
    return {load_packet<std::uint32_t, Elements / 4>(reinterpret_cast<const std::uint32_t*>(codes)),
            rowwise_int8_code::load<Elements>(tail)};
  }

  /// A number that needs what load loads.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::uint32_t some_bits() const {
    return codes.value[0] ^ detail::bit_cast<std::uint32_t>(code.scale);
  }

  /// Decodes by one operation of floats for each element, to the bits of rowwise_int8_code::decode if that
  /// adds_exactly().
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void decode(Compute (&value)[Elements]) const {
    for (int w = 0; w < Elements / 4; ++w) {
      float number[4];
      if (!device_backend<Compute>::widen_four_bytes(codes.value[w], number))
        for (int e = 0; e < 4; ++e) number[e] = static_cast<float>(codes.value[w] >> (8 * e) & 0xffu);
      for (int e = 0; e < 4; ++e) value[4 * w + e] = Compute(code.decode_fused(number[e]));
    }
  }
};

}  // namespace ferry::kernels
