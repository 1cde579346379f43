// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ferry::kernels {

/// Scale and offset of one 8-bit row, and the arithmetic with them. After FBGEMM's fused 8-bit rowwise
/// quantisation: scale = (max - min) / 255, offset = min, code = round((x - offset) / scale), ties to even.
///
/// The arithmetic is in double, in which differences of floats do not overflow and scale * code is exact. So
/// the bits are the same with and without fused multiply-add, and on every backend.
struct rowwise_int8_code {
  float scale;
  float offset;

  /// The code of a row whose elements are in [least, most]. A constant row gets the scale 0 and is restored
  /// exactly. A row with an element that is infinite or not a number gets NaN as scale and offset and is
  /// restored as NaN.
  KOKKOS_FUNCTION static rowwise_int8_code of(float least, float most) {
    constexpr float smallest_normal = Kokkos::Experimental::norm_min_v<float>;
    if (!detail::is_finite(least) || !detail::is_finite(most)) {
      const auto none = detail::bit_cast<float>(std::uint32_t{0x7fc00000});
      return {none, none};
    }
    const double range = static_cast<double>(most) - static_cast<double>(least);
    auto scale = static_cast<float>(quotient_by_255(range));
    // Rounding a subnormal quotient may make 255 steps fall short of the range.
    if (scale < smallest_normal && 255.0 * static_cast<double>(scale) < range)
      scale = detail::bit_cast<float>(detail::bit_cast<std::uint32_t>(scale) + 1u);
    // Never -0: which zero is the least depends on the order of comparison.
    return {scale, detail::magnitude_bits(least) == 0u ? 0.0f : least};
  }

  /// Encodes elements of the row. Needs has_steps(); otherwise all codes of the row are 0.
  struct encoder {
    double offset;
    double scale;
    double inverse;

    KOKKOS_FORCEINLINE_FUNCTION std::uint8_t nearest(float value) const {
      // 2^52 + position has no fraction bits, so the sum's lowest bits are the rounded integer.
      const auto rounded =
          static_cast<std::uint32_t>(detail::bit_cast<std::uint64_t>(position_of(value) + 0x1p52)) & 0x1ffu;
      return static_cast<std::uint8_t>(rounded < 255u ? rounded : 255u);
    }

    /// One of the two neighbouring codes: the upper one if the fraction between them exceeds random /
    /// 2^32.
    KOKKOS_FORCEINLINE_FUNCTION std::uint8_t at_random(float value, std::uint32_t random) const {
      const double position = position_of(value);
      const auto below = static_cast<std::uint32_t>(position);
      const double fraction = position - static_cast<double>(below);
      const auto code = below + (static_cast<double>(random) * 0x1p-32 < fraction ? 1u : 0u);
      return static_cast<std::uint8_t>(code < 255u ? code : 255u);
    }

   private:
    /// (value - offset) / scale. On a device a division takes more instructions than the rest of a code. It
    /// multiplies by a reciprocal and corrects the product by its exact remainder (Markstein, IBM Journal
    /// of Research and Development 34, 1990), which gives the same bits, also if the last bits of the
    /// reciprocal differ: a divisor of 24 bits has no quotient that is within 2^-26 of the middle of two
    /// doubles, in units of their last digit.
    KOKKOS_FORCEINLINE_FUNCTION double position_of(float value) const {
      const double above = static_cast<double>(value) - offset;
      KOKKOS_IF_ON_DEVICE((const double quotient = above * inverse;
                           return std::fma(std::fma(-quotient, scale, above), inverse, quotient);))
      KOKKOS_IF_ON_HOST((return above / scale;))
    }
  };
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION encoder by_steps() const {
    const double step = has_steps() ? static_cast<double>(scale) : 1.0;
    double inverse = 0;  // hosts divide
    KOKKOS_IF_ON_DEVICE((inverse = reciprocal(step);))
    return {static_cast<double>(offset), step, inverse};
  }

  /// True if the row is neither constant nor without a range.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool has_steps() const {
    return detail::bit_cast<std::uint32_t>(scale) - 1u < detail::exponent_bits<float> - 1u;
  }

  KOKKOS_FUNCTION double decode(std::uint8_t code) const {
    return static_cast<double>(offset) + static_cast<double>(scale) * number(code);
  }

  /// True if decode() adds without rounding, whatever the code: its sum then rounds once, to float, as that
  /// of decode_fused() does. Relative to the exponents of scale and offset, scale * code has bits from 2^-23
  /// to 2^8, and the offset from 2^-23 to 2^0. A double holds the lowest bit and one above the highest.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool adds_exactly() const {
    const int distance = exponent(offset) - exponent(scale);
    const bool has_no_sum = detail::magnitude_bits(offset) == 0u || detail::magnitude_bits(scale) == 0u;
    return (static_cast<unsigned>(distance + 20) <= 48u) | has_no_sum;
  }
  /// decode() as a float, if adds_exactly(). `code`: a number.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION float decode_fused(float code) const {
    return std::fma(scale, code, offset);
  }

  /// Reads the code behind the codes of a row, of which there is a multiple of Columns. A device loads the
  /// words that hold it: nvcc joins loads of a word and of its bytes to those of the bytes.
  template <int Columns = 1>
  KOKKOS_FORCEINLINE_FUNCTION static rowwise_int8_code load(const std::byte* tail) {
    rowwise_int8_code code;
    KOKKOS_IF_ON_DEVICE((
        // Records start on multiples of 16 bytes.
        if constexpr (Columns % 4 == 0) {
          constexpr int count = Columns % 8 == 0 ? 2 : 1;
          const auto* const words = reinterpret_cast<const std::uint32_t*>(tail);
          const auto first = *reinterpret_cast<const packet<std::uint32_t, count>*>(words);
          const std::uint32_t second = count == 2 ? first.value[count - 1] : words[1];
          code.scale = detail::bit_cast<float>(first.value[0]);
          code.offset = detail::bit_cast<float>(second);
        } else {
          const auto misalignment = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(tail) & 3u);
          const auto* const words = reinterpret_cast<const std::uint32_t*>(tail - misalignment);
          const std::uint32_t first = words[0], second = words[1], third = misalignment == 0u ? 0u : words[2];
          code.scale = detail::bit_cast<float>(word_at(first, second, misalignment * 8u));
          code.offset = detail::bit_cast<float>(word_at(second, third, misalignment * 8u));
        }))
    KOKKOS_IF_ON_HOST((std::memcpy(&code.scale, tail, sizeof(float));
                       std::memcpy(&code.offset, tail + sizeof(float), sizeof(float));))
    return code;
  }

  /// Writes scale, offset and zeros to the `bytes` bytes behind the codes of a row, fewer than 24. A device
  /// in as few stores as their alignment allows: each store is a transaction of the second-level cache.
  KOKKOS_FUNCTION void store(std::byte* tail, std::int64_t bytes) const {
    const std::uint32_t words[2] = {detail::bit_cast<std::uint32_t>(scale),
                                    detail::bit_cast<std::uint32_t>(offset)};
    KOKKOS_IF_ON_DEVICE((
        if (bytes == 16) {
          store_packet(reinterpret_cast<std::uint32_t*>(tail),
                       packet<std::uint32_t, 4>{{words[0], words[1], 0u, 0u}});
        } else {
          const bool whole = bytes % 4 == 0;
          for (std::int64_t b = 0; b < bytes; b += whole ? 4 : 1) {
            const std::uint32_t word = b < 4 ? words[0] : b < 8 ? words[1] : 0u;
            if (whole)
              *reinterpret_cast<std::uint32_t*>(tail + b) = word;
            else
              tail[b] = static_cast<std::byte>(word >> (b % 4 * 8) & 0xffu);
          }
        }))
    KOKKOS_IF_ON_HOST((std::memcpy(tail, words, 8); if (bytes >= 16) clear_ends<8>(tail + 8, bytes - 8);
                       else if (bytes >= 12) clear_ends<4>(tail + 8, bytes - 8);
                       else if (bytes >= 10) clear_ends<2>(tail + 8, bytes - 8);
                       else if (bytes == 9) clear_ends<1>(tail + 8, 1);))
  }

 private:
  /// target[0, count) = 0, of Bytes to 2 * Bytes bytes, because a loop would be a call.
  template <int Bytes>
  static void clear_ends(std::byte* target, std::int64_t count) {
    const std::byte none[Bytes] = {};
    std::memcpy(target, none, Bytes);
    std::memcpy(target + count - Bytes, none, Bytes);
  }
  /// The biased exponent that a number's lowest bit has. Subnormals have the least one.
  KOKKOS_FORCEINLINE_FUNCTION static int exponent(float number) {
    const auto field = static_cast<int>(detail::magnitude_bits(number) >> 23);
    return field > 1 ? field : 1;
  }
  /// 1 / step to 2^-50, of a positive normal number. A division in double calls a function, around which the
  /// caller's registers spill. Newton's iterations double the number of bits, from 3.
  KOKKOS_FORCEINLINE_FUNCTION static double reciprocal(double step) {
    auto inverse = detail::bit_cast<double>(0x7fde623822fc16e6u - detail::bit_cast<std::uint64_t>(step));
    for (int k = 0; k < 5; ++k) inverse = std::fma(std::fma(-step, inverse, 1.0), inverse, inverse);
    return inverse;
  }
  /// range / 255, see encoder::position_of.
  KOKKOS_FORCEINLINE_FUNCTION static double quotient_by_255(double range) {
    KOKKOS_IF_ON_DEVICE((constexpr double inverse = 1.0 / 255.0; const double quotient = range * inverse;
                         return std::fma(std::fma(-quotient, 255.0, range), inverse, quotient);))
    KOKKOS_IF_ON_HOST((return range / 255.0;))
  }
  /// The 32 bits of two words from bit `shift` on; shift < 32.
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t word_at(std::uint32_t low, std::uint32_t high,
                                                           unsigned shift) {
    const std::uint64_t words = static_cast<std::uint64_t>(high) << 32 | low;
    return static_cast<std::uint32_t>(words >> shift);
  }
  /// A code as a double. A device converts a quarter as many numbers as it adds: 2^52 with the code as its
  /// lowest bits, less 2^52.
  KOKKOS_FORCEINLINE_FUNCTION static double number(std::uint8_t code) {
    KOKKOS_IF_ON_DEVICE((return detail::bit_cast<double>(std::uint64_t{0x4330000000000000} | code) - 0x1p52;))
    KOKKOS_IF_ON_HOST((return static_cast<double>(code);))
  }
};

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
