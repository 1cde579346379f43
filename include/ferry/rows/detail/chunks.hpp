// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/packet.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

/// Rows of any width at any address, in aligned units of 16 bytes. Words are little-endian, as on all
/// devices.
namespace ferry::kernels {

/// 16 bytes at an address that is a multiple of 16.
using unit_words = packet<std::uint32_t, 4>;
inline constexpr int unit_bytes = sizeof(unit_words);

/// Memory that may be read.
struct readable_memory {
  std::uintptr_t begin = 0;
  std::uintptr_t end = std::numeric_limits<std::uintptr_t>::max();
};

/// The unit at an address. Bytes outside of the memory are 0: an array may end within a unit.
KOKKOS_FORCEINLINE_FUNCTION unit_words load_unit(const std::byte* address, const readable_memory& memory) {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  if (first >= memory.begin && first + unit_bytes <= memory.end)
    return *reinterpret_cast<const unit_words*>(address);
  unit_words unit{};
  const auto byte_at = [&](int b) {
    const bool readable = first + b >= memory.begin && first + b < memory.end;
    const auto byte = readable ? static_cast<std::uint32_t>(address[b]) : 0u;
    for (int w = 0; w < 3; ++w) unit.value[w] = unit.value[w] >> 8 | unit.value[w + 1] << 24;
    unit.value[3] = unit.value[3] >> 8 | byte << 24;
  };
  // Rare, so it must not cost registers.
  KOKKOS_IF_ON_DEVICE((_Pragma("unroll 1") for (int b = 0; b < unit_bytes; ++b) byte_at(b);))
  KOKKOS_IF_ON_HOST((for (int b = 0; b < unit_bytes; ++b) byte_at(b);))
  return unit;
}

/// The 16 bytes from byte `shift` of two neighbouring units on; shift < 16. Grain: a number of bytes that
/// divides the shift.
template <int Grain>
KOKKOS_FORCEINLINE_FUNCTION unit_words join_units(const unit_words& first, const unit_words& second,
                                                  int shift) {
  std::uint32_t word[8];
  for (int w = 0; w < 4; ++w) {
    word[w] = first.value[w];
    word[w + 4] = second.value[w];
  }
  if ((shift & 8) != 0)
    for (int w = 0; w < 6; ++w) word[w] = word[w + 2];
  if ((shift & 4) != 0)
    for (int w = 0; w < 5; ++w) word[w] = word[w + 1];
  if constexpr (Grain < 4) {
    const int bits = (shift & 3) * 8;
    for (int w = 0; w < 4; ++w)
      word[w] = static_cast<std::uint32_t>((std::uint64_t{word[w + 1]} << 32 | word[w]) >> bits);
  }
  return {{word[0], word[1], word[2], word[3]}};
}

/// Stores bytes [begin, end) of a unit; both are multiples of Grain.
template <int Grain>
KOKKOS_FORCEINLINE_FUNCTION void store_unit(std::byte* address, const unit_words& unit, int begin, int end) {
  if (begin <= 0 && end >= unit_bytes) return store_packet(reinterpret_cast<std::uint32_t*>(address), unit);
  for (int w = 0; w < 4; ++w) {
    const int first = 4 * w;
    if (first >= begin && first + 4 <= end) {
      *reinterpret_cast<std::uint32_t*>(address + first) = unit.value[w];
    } else if constexpr (Grain == 2) {
      for (int h = first; h < first + 4; h += 2)
        if (h >= begin && h < end)
          *reinterpret_cast<std::uint16_t*>(address + h) =
              static_cast<std::uint16_t>(unit.value[w] >> (8 * (h - first)));
    } else if constexpr (Grain == 1) {
      for (int b = first; b < first + 4; ++b)
        if (b >= begin && b < end) address[b] = static_cast<std::byte>(unit.value[w] >> (8 * (b - first)));
    }
  }
}

/// Part of a row on its way: the bytes of the row that fall into one unit of its destination. Units of the
/// source hold bytes of the row, or are not read.
template <int Grain>
struct row_chunk {
  unit_words first{};  ///< units of the source
  unit_words second{};
  std::byte* target = nullptr;  ///< the unit of the destination; null: none
  int shift = 0;                ///< of its first byte within the first unit
  int begin = 0;                ///< the row's bytes in the unit of the destination
  int end = 0;

  /// Loads chunk `number` of a row of `bytes` bytes.
  KOKKOS_FORCEINLINE_FUNCTION void load(const std::byte* source, std::byte* row, std::int64_t bytes,
                                        std::int64_t number, const readable_memory& memory) {
    const auto ahead = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(row) % unit_bytes);
    const std::int64_t place = number * unit_bytes - ahead;  // of the unit's first byte within the row
    if (place >= bytes) return;
    target = row + place;
    shift = static_cast<int>(reinterpret_cast<std::uintptr_t>(source + place) % unit_bytes);
    begin = place < 0 ? static_cast<int>(-place) : 0;
    end = bytes - place < unit_bytes ? static_cast<int>(bytes - place) : unit_bytes;
    const std::int64_t unit = place - shift;
    if (unit > -unit_bytes) first = load_unit(source + unit, memory);
    if (shift != 0 && unit + unit_bytes < bytes) second = load_unit(source + unit + unit_bytes, memory);
  }
  KOKKOS_FORCEINLINE_FUNCTION void store() const {
    if (target != nullptr) store_unit<Grain>(target, join_units<Grain>(first, second, shift), begin, end);
  }
};

/// row_chunk for rows of whole words, which are loaded one by one: two units and their selection would cost
/// registers, and reach beyond the row.
template <>
struct row_chunk<4> {
  unit_words words{};
  std::byte* target = nullptr;
  int begin = 0;
  int end = 0;

  KOKKOS_FORCEINLINE_FUNCTION void load(const std::byte* source, std::byte* row, std::int64_t bytes,
                                        std::int64_t number, const readable_memory&) {
    const auto ahead = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(row) % unit_bytes);
    const std::int64_t place = number * unit_bytes - ahead;
    if (place >= bytes) return;
    target = row + place;
    begin = place < 0 ? static_cast<int>(-place) : 0;
    end = bytes - place < unit_bytes ? static_cast<int>(bytes - place) : unit_bytes;
    const auto* const source_words = reinterpret_cast<const std::uint32_t*>(source + place);
    for (int w = 0; w < 4; ++w)
      if (4 * w >= begin && 4 * w < end) words.value[w] = source_words[w];
  }
  KOKKOS_FORCEINLINE_FUNCTION void store() const {
    if (target != nullptr) store_unit<4>(target, words, begin, end);
  }
};

/// The most chunks of a row of `bytes` bytes, if rows begin `stride` bytes apart from an address on.
inline std::int64_t chunks_of_rows(std::uintptr_t address, std::int64_t stride, std::int64_t bytes,
                                   std::int64_t grain) {
  const auto begins = static_cast<std::int64_t>(address % unit_bytes);
  const std::int64_t ahead = stride % unit_bytes == 0 ? begins : unit_bytes - grain;
  return (ahead + bytes + unit_bytes - 1) / unit_bytes;
}

}  // namespace ferry::kernels
