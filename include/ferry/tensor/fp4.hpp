// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry {

/// The format E2M1 of the OCP microscaling specification, `float4_e2m1fn`: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and
/// their negatives in 4 bits; neither infinity nor NaN.
struct float4_e2m1fn {
  /// The code of the largest number.
  static constexpr std::uint8_t largest = 0x7;

  /// The nearest number, ties to even. Beyond 6, and for infinity, 6 with the sign; NaN gives 6, as CUDA
  /// converts it.
  KOKKOS_FUNCTION static constexpr std::uint8_t bits_of(float value) {
    const auto bits = detail::bit_cast<std::uint32_t>(value);
    const auto magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return largest;
    const auto code = detail::minifloat<1, 1>::nearest(magnitude);
    return static_cast<std::uint8_t>(((bits >> 28) & 0x8u) | (code < largest ? code : largest));
  }
  /// One of the two neighbours, see binary16::bits_at_random.
  KOKKOS_FUNCTION static constexpr std::uint8_t bits_at_random(float value, std::uint32_t random) {
    const auto bits = detail::bit_cast<std::uint32_t>(value);
    const auto magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x40c00000u) return bits_of(value);  // above 6
    return static_cast<std::uint8_t>(((bits >> 28) & 0x8u) |
                                     detail::minifloat<1, 1>::at_random(magnitude, random));
  }
  /// The value of the number with the lower 4 of these bits, exactly.
  KOKKOS_FUNCTION static constexpr float value_of(std::uint8_t bits) {
    // The number is 2^14 times the binary16 whose exponent and mantissa have these bits.
    const std::uint32_t nibble = bits;
    const auto half = static_cast<std::uint16_t>((nibble & 0x8u) << 12 | (nibble & 0x7u) << 9);
    return binary16::value_of(half) * 16384.0f;
  }
  /// value[k] = the number whose bits are nibble k of a word, the lowest first, by a device's instructions.
  /// Returns false if it has none.
  template <class Dependent = void>
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_word([[maybe_unused]] std::uint32_t word,
                                                      [[maybe_unused]] float (&value)[8]) {
    KOKKOS_IF_ON_DEVICE((return device_backend<Dependent>::decode_eight_nibbles(word, value);))
    KOKKOS_IF_ON_HOST((return false;))
  }
};

/// Two numbers of 4 bits in one byte, the first one in its lower half. For storage: verbs move it as they
/// move a struct, and it has no value to convert. Rows of n numbers are rows of n / 2 pairs. PyTorch's
/// float4_e2m1fn_x2 has the same bits. Not so ml_dtypes' float4_e2m1fn, which takes a byte for each number.
class fp4_e2m1_pair_t {
 public:
  /// The format of both numbers.
  using format = float4_e2m1fn;

  /// Not initialised.
  fp4_e2m1_pair_t() = default;
  /// The nearest numbers, ties to even, saturating. Those of double are rounded once.
  /// @{
  KOKKOS_FUNCTION constexpr fp4_e2m1_pair_t(float first, float second)
      : bits_(static_cast<std::uint8_t>(format::bits_of(first) | format::bits_of(second) << 4)) {}
  KOKKOS_FUNCTION constexpr fp4_e2m1_pair_t(double first, double second)
      : fp4_e2m1_pair_t(detail::to_float_odd(first), detail::to_float_odd(second)) {}
  /// @}
  /// The first number, exactly: that of the lower half.
  [[nodiscard]] KOKKOS_FUNCTION constexpr float first() const { return format::value_of(bits_); }
  /// The second number, exactly.
  [[nodiscard]] KOKKOS_FUNCTION constexpr float second() const {
    return format::value_of(static_cast<std::uint8_t>(bits_ >> 4));
  }
  /// The pair with these bits.
  KOKKOS_FUNCTION static constexpr fp4_e2m1_pair_t from_bits(std::uint8_t bits) {
    return detail::bit_cast<fp4_e2m1_pair_t>(bits);
  }
  /// The bits of both numbers.
  [[nodiscard]] KOKKOS_FUNCTION constexpr std::uint8_t bits() const { return bits_; }

 private:
  std::uint8_t bits_;
};

static_assert(sizeof(fp4_e2m1_pair_t) == 1 && Element<fp4_e2m1_pair_t> && !ValueElement<fp4_e2m1_pair_t>);

}  // namespace ferry
