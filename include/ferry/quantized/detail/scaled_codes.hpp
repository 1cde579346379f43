// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/quotient.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/fp8.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

/// Codes whose values are multiplied by a float.
namespace ferry::detail {

/// Codes of 8 and 4 bits.
/// @{
template <class Byte>
struct byte_codes {
  using code_type = Byte;
  static constexpr int code_bits = 8;
  KOKKOS_FUNCTION static float value_of(std::uint32_t code) {
    return Byte::format::template decoded<typename Byte::format>(code);
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool values_of_word(std::uint32_t word, float (&value)[4]) {
    return Byte::format::decode_word(word, value);
  }
  KOKKOS_FUNCTION static std::uint32_t bits_of(float value) { return Byte::format::bits_of(value); }
  template <class Dependent = void>
  KOKKOS_FORCEINLINE_FUNCTION static bool bits_of_four([[maybe_unused]] const float (&value)[4],
                                                       [[maybe_unused]] std::uint32_t& bits) {
    KOKKOS_IF_ON_DEVICE(
        (return device_backend<Dependent>::template encode_four_bytes<std::is_same_v<Byte, fp8_e5m2_t>>(
                    value, bits);))
    KOKKOS_IF_ON_HOST((return false;))
  }
  KOKKOS_FUNCTION static std::uint32_t bits_at_random(float value, std::uint32_t random) {
    return Byte::format::bits_at_random(value, random);
  }
};
template <class Pair>
struct pair_codes {
  using code_type = Pair;
  static constexpr int code_bits = 4;
  KOKKOS_FUNCTION static float value_of(std::uint32_t code) {
    return Pair::format::value_of(static_cast<std::uint8_t>(code));
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool values_of_word(std::uint32_t word, float (&value)[8]) {
    return Pair::format::decode_word(word, value);
  }
  KOKKOS_FUNCTION static std::uint32_t bits_of(float value) { return Pair::format::bits_of(value); }
  KOKKOS_FORCEINLINE_FUNCTION static bool bits_of_four(const float (&value)[4], std::uint32_t& bits) {
    bits = 0;
    for (int e = 0; e < 4; ++e) bits |= std::uint32_t{Pair::format::bits_of(value[e])} << (4 * e);
    return true;
  }
  KOKKOS_FUNCTION static std::uint32_t bits_at_random(float value, std::uint32_t random) {
    return Pair::format::bits_at_random(value, random);
  }
};
/// @}

/// value = code * step, in float.
template <class Codes>
struct scaled_codes : Codes {
  using step_type = float;
  static constexpr bool in_records = false;

  KOKKOS_FUNCTION static float decode(std::uint32_t code, float step) { return Codes::value_of(code) * step; }
  template <int N>
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_word(std::uint32_t word, float step, float (&value)[N]) {
    if (!Codes::values_of_word(word, value)) return false;
    for (float& number : value) number *= step;
    return true;
  }
};

/// Also code = value / step, to nearest even, at most the largest number of the codes.
template <class Codes>
struct divided_codes : scaled_codes<Codes> {
  KOKKOS_FUNCTION static std::uint32_t encode(float value, float step) {
    return Codes::bits_of(quotient(value, step));
  }
  KOKKOS_FUNCTION static std::uint32_t encode_at_random(float value, float step, std::uint32_t random) {
    return Codes::bits_at_random(quotient(value, step), random);
  }
  struct encoder {
    step_quotients quotients;

    KOKKOS_FORCEINLINE_FUNCTION explicit encoder(float step) : quotients(step) {}
    KOKKOS_FORCEINLINE_FUNCTION bool encode_four(const float (&value)[4], std::uint32_t& codes) const {
      float quotient[4];
      return quotients.of_four(value, quotient) && Codes::bits_of_four(quotient, codes);
    }
  };
};

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
