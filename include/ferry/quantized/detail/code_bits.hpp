// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/quantization.hpp>
#include <ferry/rows/detail/chunks.hpp>
#include <ferry/rows/detail/packet.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>

/// Codes within bytes: code k of a row has bits [k * Bits, (k + 1) * Bits), lowest bits first.
namespace ferry::kernels {

/// Code `number` of a row, or of another array of bytes.
template <int Bits>
KOKKOS_FORCEINLINE_FUNCTION std::uint32_t code_at(const std::byte* row, std::int64_t number) {
  constexpr auto mask = (1u << Bits) - 1u;
  const std::int64_t bit = number * Bits;
  const std::byte* const first = row + bit / 8;
  const int shift = static_cast<int>(bit % 8);
  auto bits = static_cast<std::uint32_t>(*first);
  if constexpr (8 % Bits != 0) {  // codes of 16 bits begin at bytes
    if (shift + Bits > 8) bits |= static_cast<std::uint32_t>(first[1]) << 8;
    if constexpr (Bits > 10)
      if (shift + Bits > 16) bits |= static_cast<std::uint32_t>(first[2]) << 16;
  }
  return bits >> shift & mask;
}

/// Sets code `number` of a row. One thread alone writes the bytes that the code shares with its neighbours.
template <int Bits>
KOKKOS_FORCEINLINE_FUNCTION void put_code(std::byte* row, std::int64_t number, std::uint32_t code) {
  constexpr auto mask = (1u << Bits) - 1u;
  const std::int64_t bit = number * Bits;
  std::byte* const first = row + bit / 8;
  const int shift = static_cast<int>(bit % 8);
  for (int b = 0; 8 * b < shift + Bits; ++b) {
    const std::uint32_t old = static_cast<std::uint32_t>(first[b]) << (8 * b);
    first[b] = static_cast<std::byte>(((old & ~(mask << shift)) | code << shift) >> (8 * b) & 0xffu);
  }
}

/// Code `number` of a unit of 16 bytes; codes do not cross words.
template <int Bits>
KOKKOS_FORCEINLINE_FUNCTION std::uint32_t code_in(const unit_words& unit, int number) {
  constexpr auto mask = (1u << Bits) - 1u;
  return unit.value[number * Bits / 32] >> (number * Bits % 32) & mask;
}

/// The codes of four neighbouring numbers of a block, on a device.
template <class Q>
KOKKOS_FORCEINLINE_FUNCTION std::uint64_t four_codes(const float (&value)[4],
                                                     const typename Q::step_type& step,
                                                     const ferry::detail::encoder_of<Q>& encoder) {
  if (std::uint32_t word = 0; encoder.encode_four(value, word)) return word;
  std::uint64_t codes = 0;
  for (int e = 0; e < 4; ++e)
    codes |= static_cast<std::uint64_t>(Q::encode(value[e], step)) << (e * Q::code_bits);
  return codes;
}

/// Stores the codes of N numbers of a row, a multiple of four, by as few stores as their alignment allows.
/// encode(first): the codes of four numbers from `first` on.
template <int Bits, int N, class Encode>
KOKKOS_FORCEINLINE_FUNCTION void put_codes(std::byte* target, const Encode& encode) {
  constexpr int numbers = N * Bits <= 64 ? N : 4, bytes = numbers * Bits / 8;
  for (int first = 0; first < N; first += numbers) {
    std::uint64_t codes = 0;
    for (int e = 0; e < numbers; e += 4) codes |= encode(first + e) << (e * Bits);
    std::byte* const place = target + first * Bits / 8;
    if constexpr ((bytes & (bytes - 1)) == 0) {
      if (reinterpret_cast<std::uintptr_t>(place) % bytes == 0) {
        using integer = typename packet_integer<bytes>::type;
        *reinterpret_cast<integer*>(place) = static_cast<integer>(codes);
        continue;
      }
    }
    for (int b = 0; b < bytes; ++b) place[b] = static_cast<std::byte>(codes >> (8 * b) & 0xffu);
  }
}

}  // namespace ferry::kernels
