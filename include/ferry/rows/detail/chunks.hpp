// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/backend.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/launch.hpp>

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

/// The unit of a row's destination that receives a part of the row.
struct chunk_target {
  std::byte* target = nullptr;  ///< null: none
  int begin = 0;                ///< the row's bytes in the unit
  int end = 0;

  /// Selects unit `number` of a row of `bytes` bytes. Returns the offset of its first byte within the row.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t select(std::byte* row, std::int64_t bytes, std::int64_t number) {
    const auto head_bytes = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(row) % unit_bytes);
    const std::int64_t offset = number * unit_bytes - head_bytes;
    if (offset >= bytes) return offset;
    target = row + offset;
    begin = offset < 0 ? static_cast<int>(-offset) : 0;
    end = bytes - offset < unit_bytes ? static_cast<int>(bytes - offset) : unit_bytes;
    return offset;
  }
};

/// Part of a row on its way: the bytes of the row that fall into one unit of its destination. Units of the
/// source hold bytes of the row, or are not read.
template <int Grain>
struct row_chunk : chunk_target {
  unit_words first{};  ///< units of the source
  unit_words second{};
  int shift = 0;  ///< of the unit's first byte within the first unit of the source

  /// Loads chunk `number` of a row of `bytes` bytes.
  KOKKOS_FORCEINLINE_FUNCTION void load(const std::byte* source, std::byte* row, std::int64_t bytes,
                                        std::int64_t number, const readable_memory& memory) {
    const std::int64_t offset = select(row, bytes, number);
    if (target == nullptr) return;
    shift = static_cast<int>(reinterpret_cast<std::uintptr_t>(source + offset) % unit_bytes);
    const std::int64_t unit = offset - shift;
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
struct row_chunk<4> : chunk_target {
  unit_words words{};

  KOKKOS_FORCEINLINE_FUNCTION void load(const std::byte* source, std::byte* row, std::int64_t bytes,
                                        std::int64_t number, const readable_memory&) {
    const auto* const source_words =
        reinterpret_cast<const std::uint32_t*>(source + select(row, bytes, number));
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
  const std::int64_t head_bytes = stride % unit_bytes == 0 ? begins : unit_bytes - grain;
  return (head_bytes + bytes + unit_bytes - 1) / unit_bytes;
}

/// Shorter rows move in units of one element: their ends would be most of their chunks.
inline constexpr std::int64_t least_chunked_bytes = 64;

/// out[position(k)] = table[row(k)] for each item k of the source, as gather_rows, for rows that are no
/// whole units of 16 bytes or begin between two of them. Strides and width are in bytes, multiples of
/// Grain.
///
/// Device mapping: one thread per 16-byte unit of the destination that holds bytes of the row, row-major. The
/// first and the last unit of a row may belong to its neighbours, too; of these no byte is written. A thread
/// has `at_once` items, `step` apart so that neighbouring threads write neighbouring rows, and issues their
/// loads before the first store. 40 registers: with 32 it spills them. If neighbouring rows of a batch go to
/// rows far from one another, the thread of a row's end lets the cache read the sector that the row shares
/// with its neighbour: a sector that is written in part would be read when it leaves the cache. Rows of whole
/// words are loaded word by word, others by the one or two units of the source that hold the bytes, which the
/// first level of cache serves to neighbouring threads.
template <int Grain, class Source>
struct gather_row_chunks {
  static constexpr int at_once = Grain == 4 ? 2 : 1;                     ///< items of a thread
  static constexpr std::int64_t step = 32;                               ///< a power of two
  static constexpr unsigned int most_threads = 256, blocks_at_once = 6;  ///< see launch: 40 registers

  const std::byte* table;
  std::int64_t table_stride;
  std::byte* out;
  std::int64_t out_stride;
  std::int64_t width;
  detail::fast_divisor chunks;  ///< of a row, see chunks_of_rows
  Source source;
  std::int64_t items;
  readable_memory memory;  ///< of the table

  /// Threads per chunk of a row.
  static std::int64_t groups(std::int64_t items) {
    const std::int64_t left = items % (at_once * step);
    return items / (at_once * step) * step + (left < step ? left : step);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t group = chunks.quotient(i);
    const std::int64_t number = i - group * chunks.divisor();
    const std::int64_t lane = group & (step - 1);
    const std::int64_t first = at_once * (group - lane) + lane;
    std::int64_t row[at_once];
    row_chunk<Grain> chunk[at_once];
    for (int k = 0; k < at_once; ++k) {
      const std::int64_t item = first + k * step;
      row[k] = item < items ? source.row(item, number == 0) : -1;
    }
    for (int k = 0; k < at_once; ++k)
      if (row[k] >= 0) load(chunk[k], row[k], source.position(first + k * step), number);
    for (int k = 0; k < at_once; ++k) chunk[k].store();
  }

 private:
  static constexpr std::uintptr_t sector = 32;  ///< bytes

  KOKKOS_FORCEINLINE_FUNCTION void load(row_chunk<Grain>& chunk, std::int64_t row, std::int64_t position,
                                        std::int64_t number) const {
    std::byte* const target = out + position * out_stride;
    if constexpr (Grain == 4 && requires { Source::spreads_positions; }) {
      const auto begin = reinterpret_cast<std::uintptr_t>(target);
      const auto end = begin + static_cast<std::uintptr_t>(width);
      if (number == 0 && begin % sector != 0) device_backend<Source>::prefetch(target);
      if (number == chunks.divisor() - 1 && end % sector != 0)
        device_backend<Source>::prefetch(target + width - 1);
    }
    chunk.load(table + row * table_stride, target, width, number, memory);
  }
};

/// gather_row_chunks for rows of whole words that cross a link. A link carries a fixed number of lines of 128
/// bytes a second, and a part of a line costs as much as the whole.
///
/// Device mapping: the 32 neighbouring threads of a warp take a row. Each of their accesses to the memory
/// behind the link is one line, or the part of it that belongs to the row: no line is asked for twice.
template <class Source>
struct gather_row_lines {
  static constexpr int lanes = 32;
  static constexpr int at_once = 6;  ///< lines under way

  const std::byte* table;
  std::int64_t table_stride;
  std::byte* out;
  std::int64_t out_stride;
  std::int64_t width;
  Source source;
  bool by_table;  ///< whether the table lies behind the link, else the batch

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t item = i / lanes;
    const auto lane = static_cast<int>(i % lanes);
    const std::int64_t row = source.row(item, lane == 0);
    if (row < 0) return;
    const auto* const row_words = reinterpret_cast<const std::uint32_t*>(table + row * table_stride);
    auto* const target = reinterpret_cast<std::uint32_t*>(out + source.position(item) * out_stride);
    const auto address =
        by_table ? reinterpret_cast<std::uintptr_t>(row_words) : reinterpret_cast<std::uintptr_t>(target);
    const std::int64_t words = width / std::int64_t{sizeof(std::uint32_t)};
    const int head_words =
        static_cast<int>(address / sizeof(std::uint32_t) % lanes);  // words of the first line
    for (std::int64_t first = lane - head_words; first < words; first += std::int64_t{lanes} * at_once) {
      std::uint32_t word[at_once];
      const auto is_in_row = [&](int k) {
        return first + std::int64_t{k} * lanes >= 0 && first + std::int64_t{k} * lanes < words;
      };
      for (int k = 0; k < at_once; ++k)
        if (is_in_row(k)) word[k] = row_words[first + std::int64_t{k} * lanes];
      for (int k = 0; k < at_once; ++k)
        if (is_in_row(k)) target[first + std::int64_t{k} * lanes] = word[k];
    }
  }
};

}  // namespace ferry::kernels
