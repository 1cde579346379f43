// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/quantization.hpp>
#include <ferry/rows/detail/chunks.hpp>
#include <ferry/rows/detail/packet.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

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
    std::byte* const first_byte = target + first * Bits / 8;
    if constexpr ((bytes & (bytes - 1)) == 0) {
      if (reinterpret_cast<std::uintptr_t>(first_byte) % bytes == 0) {
        using integer = packet_integer<bytes>;
        *reinterpret_cast<integer*>(first_byte) = static_cast<integer>(codes);
        continue;
      }
    }
    for (int b = 0; b < bytes; ++b) first_byte[b] = static_cast<std::byte>(codes >> (8 * b) & 0xffu);
  }
}

/// The scales of a row: an array, or the record behind the codes.
template <class Q>
using scale_pointer = std::conditional_t<Q::in_records, const std::byte*, const typename Q::scale_type*>;

/// The scale of a block. Columns: a divisor of the width.
template <class Q, int Columns = 1, class Block>
KOKKOS_FORCEINLINE_FUNCTION auto scale_at([[maybe_unused]] scale_pointer<Q> scales,
                                          [[maybe_unused]] Block block) {
  if constexpr (!has_scales<Q>)
    return no_scale{};
  else if constexpr (Q::in_records)
    return Q::scale_type::template load<Columns>(scales);
  else
    return scales[block];
}

/// Facts of codes and scales that do not depend on where a table has them. A kind of memory adds:
///
///   codes_of(row), scales_of(row)   where those of a row begin
///   memory_of(row)                  the memory of the codes in which a row lies
///   is_aligned(bytes)               true if the codes of all rows begin at multiples of this many bytes
///   units_of_row()                  the most units of 16 bytes that the codes of a row touch
template <class Q>
struct coded_blocks {
  using quantization = Q;

  std::int64_t row_bytes = 0;  ///< of codes
  std::int64_t blocks = 0;     ///< scales of a row
  float tensor_scale = 1.0f;

  /// By which the codes of a block are decoded.
  template <class Block>
  KOKKOS_FORCEINLINE_FUNCTION typename Q::step_type step_of(scale_pointer<Q> scales, Block block) const {
    return Q::step_of(scale_at<Q>(scales, block), tensor_scale);
  }
  /// The block of a column.
  template <class Column>
  KOKKOS_FORCEINLINE_FUNCTION static Column block_of([[maybe_unused]] Column column) {
    if constexpr (Q::block == 0)
      return 0;
    else
      return column / static_cast<Column>(Q::block);
  }
  /// True if rows of codes from an address on begin at multiples of this many bytes.
  [[nodiscard]] bool is_aligned_from(const std::byte* codes, int bytes) const {
    return reinterpret_cast<std::uintptr_t>(codes) % static_cast<std::uintptr_t>(bytes) == 0 &&
           (Q::in_records || row_bytes % bytes == 0);
  }
  [[nodiscard]] std::int64_t units_from(const std::byte* codes) const {
    return chunks_of_rows(reinterpret_cast<std::uintptr_t>(codes), Q::in_records ? unit_bytes : row_bytes,
                          row_bytes, 1);
  }
};

/// The codes and scales of a table in arrays, or records, as kernels read them. Records are whole units.
template <class Q>
struct coded_memory : coded_blocks<Q> {
  const std::byte* codes = nullptr;
  const typename Q::scale_type* scales = nullptr;
  readable_memory memory{};       ///< of the codes
  std::int64_t record_bytes = 0;  ///< from one record to the next

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION readable_memory memory_of(std::int64_t) const { return memory; }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION const std::byte* codes_of(std::int64_t row) const {
    return codes + row * (Q::in_records ? record_bytes : this->row_bytes);
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION scale_pointer<Q> scales_of(std::int64_t row) const {
    if constexpr (Q::in_records)
      return codes_of(row) + this->row_bytes;
    else
      return scales + row * this->blocks;
  }
  [[nodiscard]] bool is_aligned(int bytes) const { return this->is_aligned_from(codes, bytes); }
  [[nodiscard]] std::int64_t units_of_row() const { return this->units_from(codes); }
};

}  // namespace ferry::kernels
