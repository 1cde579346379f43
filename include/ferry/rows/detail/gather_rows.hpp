// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>

/// The index loaders of gather_unique, see row_source.hpp.
namespace ferry::kernels {

/// Item i is the row of segment i, which goes to the first position that names it.
struct segment_heads {
  const std::int64_t* unique_rows = nullptr;
  const std::int64_t* segment_begin = nullptr;
  const std::int64_t* order = nullptr;
  const std::int64_t* unique_count = nullptr;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t segment, bool) const {
    return segment < *unique_count ? unique_rows[segment] : -1;
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t segment) const { return order[segment_begin[segment]]; }
};

/// Item p is position p, which gets the row of its segment's first position, unless it is that position.
struct repeated_positions {
  segment_heads heads;
  const std::int64_t* inverse = nullptr;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t p, bool) const {
    const std::int64_t segment = inverse[p];
    if (segment < 0) return -1;
    const std::int64_t head = heads.position(segment);
    return head == p ? -1 : head;
  }
  KOKKOS_FUNCTION static std::int64_t position(std::int64_t p) { return p; }
};

/// out[position(k)] = table[row(k)] for each item k of the source. Rows that the source does not resolve keep
/// their contents. This is the device's kernel for rows that only move; convert_rows also converts.
///
/// Device mapping: one thread per element (or 16-byte unit) of the batch, row-major, so that neighbouring
/// threads read neighbouring bytes of one row. One row of 512 bytes is one warp's load. No shared memory, no
/// teams: the flat range measured as fast as hand-written CUDA. Units are of type `Unit`, or of 16 bytes
/// if `wide` is set: one kernel, so its launch is compiled once. Strides and width are in units.
///
/// With AtOnce of 2, for launches that cover all items at once, a thread has two items: both loads are issued
/// before the first store, which gains about 6 % of the rate inside the device (H200). A thread's items are
/// `step` apart: 1, or more for rows so short that neighbouring threads should take neighbouring rows.
template <class Unit, class Source, int AtOnce>
struct gather_rows {
  static constexpr std::int64_t longest_step = 32;
  static constexpr std::int64_t short_row = 32;  // bytes: a sector of the device's cache

  const void* table;
  std::int64_t table_stride;
  void* out;
  std::int64_t out_stride;
  detail::fast_divisor width;
  Source source;
  std::int64_t items;
  std::int64_t step;  ///< a power of two
  bool wide;

  /// Distance between a thread's items, for rows of `units` units.
  static std::int64_t step_for(std::int64_t units, bool wide) {
    const auto bytes = static_cast<std::int64_t>(wide ? sizeof(opaque16) : sizeof(Unit));
    return units * bytes < short_row ? longest_step : 1;
  }
  /// Threads per unit of a row.
  [[nodiscard]] std::int64_t groups() const {
    if constexpr (AtOnce == 1) return items;
    const std::int64_t left = items % (AtOnce * step);
    return items / (AtOnce * step) * step + (left < step ? left : step);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (wide)
      move<opaque16>(i);
    else
      move<Unit>(i);
  }

 private:
  template <class Any>
  KOKKOS_FORCEINLINE_FUNCTION void move(std::int64_t i) const {
    const std::int64_t group = width.quotient(i);
    const std::int64_t column = i - group * width.divisor();
    const std::int64_t lane = AtOnce == 1 ? 0 : group & (step - 1);
    const std::int64_t first = AtOnce * (group - lane) + lane;
    std::int64_t row[AtOnce], offset[AtOnce];
    Any unit[AtOnce];
    for (int k = 0; k < AtOnce; ++k) {
      const std::int64_t item = first + k * step;
      row[k] = AtOnce == 1 || item < items ? source.row(item, column == 0) : -1;
    }
    for (int k = 0; k < AtOnce; ++k) {
      offset[k] = -1;
      if (row[k] < 0) continue;
      unit[k] = static_cast<const Any*>(table)[row[k] * table_stride + column];
      offset[k] = source.position(first + k * step) * out_stride + column;
    }
    for (int k = 0; k < AtOnce; ++k)
      if (offset[k] >= 0) static_cast<Any*>(out)[offset[k]] = unit[k];
  }
};

/// The gather kernel for a host's cores. One iteration per block of a row: a short row is one memcpy, and the
/// threads share a huge one. A row's first lines are prefetched some rows ahead, because random rows would
/// otherwise be one cache miss after the other.
template <class Out, class In, class Source>
struct gather_blocks {
  static constexpr std::int64_t block = 16384;  // elements

  const In* table;
  std::int64_t table_stride;
  Out* out;
  std::int64_t out_stride;
  std::int64_t width;
  std::int64_t blocks;
  std::int64_t items;
  Source source;

  [[nodiscard]] std::int64_t bytes_each() const {
    return (width < block ? width : block) * static_cast<std::int64_t>(sizeof(In) + sizeof(Out));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t item = blocks == 1 ? i : i / blocks;
    const std::int64_t begin = (i - item * blocks) * block;
    const std::int64_t count = width - begin < block ? width - begin : block;
    const std::int64_t bytes = width * static_cast<std::int64_t>(sizeof(In));
    if (const std::int64_t upcoming = item + look_ahead::rows(bytes); blocks == 1 && upcoming < items) {
      const std::int64_t upcoming_row = source.row(upcoming, false);
      if (upcoming_row >= 0) look_ahead::prefetch(table + upcoming_row * table_stride, bytes);
    }
    const std::int64_t row = source.row(item, begin == 0);
    if (row < 0) return;
    const In* input = table + row * table_stride + begin;
    Out* output = out + source.position(item) * out_stride + begin;
    if constexpr (std::is_same_v<Out, In>)
      std::memcpy(static_cast<void*>(output), static_cast<const void*>(input),
                  static_cast<std::size_t>(count) * sizeof(In));
    else
      for (std::int64_t c = 0; c < count; ++c) output[c] = convert<Out>(input[c]);
  }
};

/// out[position(k)] = table[row(k)] for each item k of the source, converted to another element type. Rows
/// that the source does not resolve keep their contents. Each element is converted once, from In to Out.
///
/// Device mapping: one thread per tile of a row, row-major, so that neighbouring threads read and write
/// neighbouring bytes. A tile is packed if `packed` says that every row of both sides consists of packets,
/// else masked. Both cases share one kernel: the branch is uniform, and the kernel has many instances
/// already.
template <class Out, class In, class Source>
struct convert_rows {
  const In* table;
  std::int64_t table_stride;
  Out* out;
  std::int64_t out_stride;
  std::int64_t width;
  detail::fast_divisor tiles;
  bool packed;
  Source source;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t item = tiles.quotient(i);
    const std::int64_t tile = i - item * tiles.divisor();
    const std::int64_t row = source.row(item, tile == 0);
    if (row < 0) return;
    const std::int64_t position = source.position(item);
    if (packed)
      convert_tile<packed_tile_of<Out, In>>(position, row, tile);
    else
      convert_tile<masked_tile>(position, row, tile);
  }

  template <class Tile>
  KOKKOS_FORCEINLINE_FUNCTION void convert_tile(std::int64_t position, std::int64_t row,
                                                std::int64_t tile) const {
    Out* const target = out + position * out_stride;
    std::int64_t column = tile * Tile::elements;
    if constexpr (Tile::masked) column = masked_column<Tile>(tile, target);
    const int count = count_of<Tile>(column, width);
    if (count == 0) return;
    In value[Tile::elements];
    load_tile<Tile>(value, table + row * table_stride + column, count);
    store_tile<Tile>(value, target + column, count);
  }
};

}  // namespace ferry::kernels
