// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/detail/bit_cast.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The block_range of numbers, found with integers: their keys are ordered as the numbers are, and NaN lies
/// beyond infinity.
struct block_bounds {
  using reducer = Kokkos::MinMax<std::uint32_t>;
  using values = Kokkos::MinMaxScalar<std::uint32_t>;

  KOKKOS_FUNCTION static values nothing() {
    values empty;
    empty.min_val = 0xffffffffu;
    empty.max_val = 0u;
    return empty;
  }
  KOKKOS_FORCEINLINE_FUNCTION static void widen(values& bounds, float value) {
    const auto bits = detail::bit_cast<std::uint32_t>(value);
    const auto key = (bits >> 31) != 0u ? ~bits : bits | 0x80000000u;
    bounds.min_val = key < bounds.min_val ? key : bounds.min_val;
    bounds.max_val = key > bounds.max_val ? key : bounds.max_val;
  }
  KOKKOS_FORCEINLINE_FUNCTION static block_range range_of(const values& bounds) {
    return {number_of(bounds.min_val), number_of(bounds.max_val)};
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static float number_of(std::uint32_t key) {
    return detail::bit_cast<float>((key >> 31) != 0u ? key & 0x7fffffffu : ~key);
  }
};

}  // namespace ferry::kernels
