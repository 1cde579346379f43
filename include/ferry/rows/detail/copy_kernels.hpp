// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/extents.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ferry::kernels {

/// target[e] = source[e] for e in [0, count), converted; both sides are contiguous. One iteration per tile: a
/// device's thread loads and stores 4 elements at once, and a host's compiler vectorises the loop. The last
/// tile may be shorter.
template <class To, class From, class Tile>
struct convert_elements {
  static constexpr std::int64_t elements = Tile::host ? 64 : Tile::elements;  ///< per iteration

  To* target;
  const From* source;
  std::int64_t count;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t begin = i * elements;
    const std::int64_t left = count - begin;
    if (left >= elements) {
      for (std::int64_t first = begin; first < begin + elements; first += Tile::elements) {
        From value[Tile::elements];
        load_tile<Tile>(value, source + first, Tile::elements);
        store_tile<Tile>(value, target + first, Tile::elements);
      }
    } else {
      for (std::int64_t e = 0; e < left; ++e) target[begin + e] = convert<To>(source[begin + e]);
    }
  }
};

/// Row-major position in a box -> offsets on both sides.
struct box_offsets {
  static constexpr int most = max_rank + 1;
  detail::fast_divisor extents[most];
  std::int64_t target[most] = {};
  std::int64_t source[most] = {};
  int rank = 0;

  box_offsets() = default;
  /// The dimensions of a box but `without` and `without_too`.
  explicit box_offsets(const detail::copy_box& box, std::size_t without = most,
                       std::size_t without_too = most) {
    for (std::size_t d = 0; d <= box.last(); ++d) {
      if (d == without || d == without_too) continue;
      extents[rank] = detail::fast_divisor(box.extents[d]);
      target[rank] = box.target[d];
      source[rank++] = box.source[d];
    }
  }
  KOKKOS_FUNCTION void operator()(std::int64_t position, std::int64_t& target_offset,
                                  std::int64_t& source_offset) const {
    for (int d = rank - 1; d > 0; --d) {
      const std::int64_t outer = extents[d].quotient(position);
      const std::int64_t index = position - outer * extents[d].divisor();
      target_offset += index * target[d];
      source_offset += index * source[d];
      position = outer;
    }
    // Without dimensions both strides are 0.
    target_offset += position * target[0];
    source_offset += position * source[0];
  }
};

/// Copies a box on a device, one thread per element. Neighbouring threads write neighbouring elements.
template <class To, class From>
struct copy_strided {
  To* target;
  const From* source;
  box_offsets offsets;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    std::int64_t target_offset = 0, source_offset = 0;
    offsets(i, target_offset, source_offset);
    target[target_offset] = convert<To>(source[source_offset]);
  }
};

/// Copies a box on a device of which dimension a is the innermost of the source, and dimension b that of the
/// target.
///
/// Device mapping: a thread holds a tile of 4 x 4 elements in registers, loads it along a and stores it along
/// b, in packets if the alignment allows. The 32 threads of a warp are 8 along a and 4 along b, so a load
/// of floats covers 128 neighbouring bytes, and a store 64.
template <class To, class From>
struct transpose_tiles {
  static constexpr int edge = 4, along_a = 8, along_b = 4, warp = along_a * along_b;

  To* target;
  const From* source;
  std::int64_t size_a, target_a, source_a;
  std::int64_t size_b, target_b, source_b;
  detail::fast_divisor tiles_a, tiles_b;  ///< of a whole warp
  box_offsets outer;
  bool packed_loads, packed_stores;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto lane = static_cast<int>(i & (warp - 1));
    const std::int64_t tile = i / warp;
    const std::int64_t outer_tile = tiles_a.quotient(tile);
    const std::int64_t outer_position = tiles_b.quotient(outer_tile);
    const std::int64_t a = ((tile - outer_tile * tiles_a.divisor()) * along_a + lane % along_a) * edge;
    const std::int64_t b =
        ((outer_tile - outer_position * tiles_b.divisor()) * along_b + lane / along_a) * edge;
    if (a >= size_a || b >= size_b) return;
    std::int64_t target_offset = a * target_a + b * target_b, source_offset = a * source_a + b * source_b;
    outer(outer_position, target_offset, source_offset);
    if (size_a - a < edge || size_b - b < edge) {
      for (std::int64_t u = 0; u < edge && a + u < size_a; ++u)
        for (std::int64_t v = 0; v < edge && b + v < size_b; ++v)
          target[target_offset + u * target_a + v * target_b] =
              convert<To>(source[source_offset + u * source_a + v * source_b]);
      return;
    }
    To block[edge][edge];
    for (int v = 0; v < edge; ++v) {
      const From* const row = source + source_offset + v * source_b;
      if (packed_loads) {
        const auto whole = *reinterpret_cast<const packet<From, edge>*>(row);
        for (int u = 0; u < edge; ++u) block[u][v] = convert<To>(whole.value[u]);
      } else {
        for (int u = 0; u < edge; ++u) block[u][v] = convert<To>(row[u * source_a]);
      }
    }
    for (int u = 0; u < edge; ++u) {
      To* const row = target + target_offset + u * target_a;
      if (packed_stores) {
        packet<To, edge> whole;
        for (int v = 0; v < edge; ++v) whole.value[v] = block[u][v];
        store_packet(row, whole);
      } else {
        for (int v = 0; v < edge; ++v) row[v * target_b] = block[u][v];
      }
    }
  }
};

/// Copies a box on the host, row by row of its innermost dimension; long rows in blocks. Each thread walks
/// over neighbouring blocks.
template <class To, class From>
struct copy_rows {
  static constexpr bool takes_runs = true;
  static constexpr std::int64_t block = 1 << 14;  ///< elements; less than what memcpy writes past the caches

  To* target;
  const From* source;
  detail::copy_box box;
  bool past_caches;  ///< the destination is not read soon

  [[nodiscard]] std::int64_t blocks() const { return (box.inner() + block - 1) / block; }
  [[nodiscard]] std::int64_t count() const { return box.size() / box.inner() * blocks(); }
  [[nodiscard]] std::int64_t bytes_each() const {
    return std::min(block, box.inner()) * static_cast<std::int64_t>(sizeof(To) + sizeof(From));
  }

  void operator()(const detail::host_run& run) const {
    const std::int64_t total = count(), per_row = blocks();
    const std::size_t last = box.last();
    std::int64_t item = run.begin(total);
    const std::int64_t end = run.end(total);
    if (item >= end) return;
    std::int64_t part = item % per_row;
    detail::copy_box::numbers index{};
    std::int64_t row = item / per_row;
    auto [target_offset, source_offset] = box.offsets(row, box.rank - 1);
    for (std::size_t d = last; d-- > 0;) {
      index[d] = row % box.extents[d];
      row /= box.extents[d];
    }
    while (item < end) {
      const std::int64_t first = part * block;
      copy_row(target + target_offset + first * box.target[last],
               source + source_offset + first * box.source[last], std::min(block, box.inner() - first));
      ++item;
      if (++part < per_row) continue;
      part = 0;
      for (std::size_t d = last; d-- > 0;) {
        target_offset += box.target[d];
        source_offset += box.source[d];
        if (++index[d] < box.extents[d]) break;
        target_offset -= box.extents[d] * box.target[d];
        source_offset -= box.extents[d] * box.source[d];
        index[d] = 0;
      }
    }
  }

 private:
  void copy_row(To* output, const From* input, std::int64_t count) const {
    const std::int64_t target_step = box.target[box.last()], source_step = box.source[box.last()];
    if (target_step == 1 && source_step == 1) {
      if constexpr (std::is_same_v<To, From>) {
        const auto bytes = static_cast<std::size_t>(count) * sizeof(To);
        if (past_caches)
          device_backend<To>::copy_past_caches(output, input, bytes);
        else
          std::memcpy(static_cast<void*>(output), input, bytes);
      } else {
        using whole = convert_elements<To, From, host_tile>;  // vectorised at -O2, unlike a plain loop
        const whole convert_run{output, input, count};
        for (std::int64_t i = 0; i * whole::elements < count; ++i) convert_run(i);
      }
    } else {
      for (std::int64_t e = 0; e < count; ++e) output[e * target_step] = convert<To>(input[e * source_step]);
    }
  }
};

/// Copies a box on the host of which dimension a is the innermost of the source, and the last one that of the
/// target, in tiles. A tile is loaded along a and stored along the last dimension, by way of a buffer in the
/// first cache: tiles of arrays whose rows are a power of two apart would evict their own lines.
template <class To, class From>
struct transpose_blocks {
  static constexpr std::int64_t edge = 32;

  To* target;
  const From* source;
  std::int64_t size_a, target_a, source_a;
  std::int64_t size_b, target_b, source_b;
  std::int64_t tiles_a, tiles_b;
  box_offsets outer;

  static std::int64_t bytes_each() {
    return edge * edge * static_cast<std::int64_t>(sizeof(To) + sizeof(From));
  }

  void operator()(std::int64_t tile) const {
    const std::int64_t a = tile % tiles_a * edge;
    const std::int64_t b = tile / tiles_a % tiles_b * edge;
    std::int64_t target_offset = a * target_a + b * target_b, source_offset = a * source_a + b * source_b;
    outer(tile / tiles_a / tiles_b, target_offset, source_offset);
    const std::int64_t in_a = std::min(edge, size_a - a), in_b = std::min(edge, size_b - b);
    From block[edge][edge + 1];
    for (std::int64_t v = 0; v < in_b; ++v)
      for (std::int64_t u = 0; u < in_a; ++u)
        block[v][u] = source[source_offset + v * source_b + u * source_a];
    for (std::int64_t u = 0; u < in_a; ++u)
      for (std::int64_t v = 0; v < in_b; ++v)
        target[target_offset + u * target_a + v * target_b] = convert<To>(block[v][u]);
  }
};

}  // namespace ferry::kernels
