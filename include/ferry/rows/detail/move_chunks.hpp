// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/backend.hpp>
#include <ferry/rows/detail/chunks.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::kernels {

/// Shorter rows move in units of one element: their ends would be most of their chunks.
inline constexpr std::int64_t fewest_chunked_bytes = 64;

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
    const std::int64_t rest = items % (at_once * step);
    return items / (at_once * step) * step + (rest < step ? rest : step);
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

/// gather_row_chunks for rows of whole words that cross a link, which takes so many lines of 128 bytes a
/// second, whatever part of a line is asked for.
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
    const int ahead = static_cast<int>(address / sizeof(std::uint32_t) % lanes);  // words of the first line
    for (std::int64_t first = lane - ahead; first < words; first += std::int64_t{lanes} * at_once) {
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
