// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/rows/detail/copy_elements.hpp>
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

/// Row-major position in a box -> offsets on both sides.
struct box_places {
  static constexpr int most = max_rank + 1;
  detail::fast_divisor extents[most];
  std::int64_t to[most] = {};
  std::int64_t from[most] = {};
  int rank = 0;

  box_places() = default;
  /// The dimensions of a box but `without` and `without_too`.
  explicit box_places(const detail::copy_box& box, std::size_t without = most,
                      std::size_t without_too = most) {
    for (std::size_t d = 0; d <= box.last(); ++d) {
      if (d == without || d == without_too) continue;
      extents[rank] = detail::fast_divisor(box.extents[d]);
      to[rank] = box.to[d];
      from[rank++] = box.from[d];
    }
  }
  KOKKOS_FUNCTION void operator()(std::int64_t position, std::int64_t& there, std::int64_t& here) const {
    for (int d = rank - 1; d > 0; --d) {
      const std::int64_t outer = extents[d].quotient(position);
      const std::int64_t index = position - outer * extents[d].divisor();
      there += index * to[d];
      here += index * from[d];
      position = outer;
    }
    // Without dimensions both strides are 0.
    there += position * to[0];
    here += position * from[0];
  }
};

/// Copies a box on a device, one thread per element. Neighbouring threads write neighbouring elements.
template <class To, class From>
struct copy_strided {
  To* to;
  const From* from;
  box_places places;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    std::int64_t there = 0, here = 0;
    places(i, there, here);
    to[there] = convert<To>(from[here]);
  }
};

/// Copies a box on a device of which dimension a is the innermost of `from`, and dimension b that of `to`.
///
/// Device mapping: a thread holds a tile of 4 x 4 elements in registers, loads it along a and stores it along
/// b, in packets where the alignment allows. The 32 threads of a warp are 8 along a and 4 along b, so a load
/// of floats covers 128 neighbouring bytes, and a store 64.
template <class To, class From>
struct transpose_tiles {
  static constexpr int edge = 4, along_a = 8, along_b = 4, warp = along_a * along_b;

  To* to;
  const From* from;
  std::int64_t size_a, to_a, from_a;
  std::int64_t size_b, to_b, from_b;
  detail::fast_divisor tiles_a, tiles_b;  ///< of a whole warp
  box_places others;
  bool packed_loads, packed_stores;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto lane = static_cast<int>(i & (warp - 1));
    const std::int64_t tile = i / warp;
    const std::int64_t rest = tiles_a.quotient(tile);
    const std::int64_t other = tiles_b.quotient(rest);
    const std::int64_t a = ((tile - rest * tiles_a.divisor()) * along_a + lane % along_a) * edge;
    const std::int64_t b = ((rest - other * tiles_b.divisor()) * along_b + lane / along_a) * edge;
    if (a >= size_a || b >= size_b) return;
    std::int64_t there = a * to_a + b * to_b, here = a * from_a + b * from_b;
    others(other, there, here);
    if (size_a - a < edge || size_b - b < edge) {
      for (std::int64_t u = 0; u < edge && a + u < size_a; ++u)
        for (std::int64_t v = 0; v < edge && b + v < size_b; ++v)
          to[there + u * to_a + v * to_b] = convert<To>(from[here + u * from_a + v * from_b]);
      return;
    }
    To held[edge][edge];
    for (int v = 0; v < edge; ++v) {
      const From* const row = from + here + v * from_b;
      if (packed_loads) {
        const auto whole = *reinterpret_cast<const packet<From, edge>*>(row);
        for (int u = 0; u < edge; ++u) held[u][v] = convert<To>(whole.value[u]);
      } else {
        for (int u = 0; u < edge; ++u) held[u][v] = convert<To>(row[u * from_a]);
      }
    }
    for (int u = 0; u < edge; ++u) {
      To* const row = to + there + u * to_a;
      if (packed_stores) {
        packet<To, edge> whole;
        for (int v = 0; v < edge; ++v) whole.value[v] = held[u][v];
        store_packet(row, whole);
      } else {
        for (int v = 0; v < edge; ++v) row[v * to_b] = held[u][v];
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

  To* to;
  const From* from;
  detail::copy_box box;
  bool past_caches;  ///< the destination is not read soon

  [[nodiscard]] std::int64_t blocks() const { return (box.inner() + block - 1) / block; }
  [[nodiscard]] std::int64_t count() const { return box.size() / box.inner() * blocks(); }

  void operator()(const detail::host_run& run) const {
    const std::int64_t all = count(), per_row = blocks();
    const std::size_t last = box.last();
    std::int64_t at = run.begin(all);
    const std::int64_t end = run.end(all);
    if (at >= end) return;
    std::int64_t part = at % per_row;
    detail::copy_box::numbers index{};
    std::int64_t row = at / per_row;
    auto [there, here] = box.offsets(row, box.rank - 1);
    for (std::size_t d = last; d-- > 0;) {
      index[d] = row % box.extents[d];
      row /= box.extents[d];
    }
    while (at < end) {
      const std::int64_t first = part * block;
      copy_row(to + there + first * box.to[last], from + here + first * box.from[last],
               std::min(block, box.inner() - first));
      ++at;
      if (++part < per_row) continue;
      part = 0;
      for (std::size_t d = last; d-- > 0;) {
        there += box.to[d];
        here += box.from[d];
        if (++index[d] < box.extents[d]) break;
        there -= box.extents[d] * box.to[d];
        here -= box.extents[d] * box.from[d];
        index[d] = 0;
      }
    }
  }

 private:
  void copy_row(To* there, const From* here, std::int64_t count) const {
    const std::int64_t to_step = box.to[box.last()], from_step = box.from[box.last()];
    if (to_step == 1 && from_step == 1) {
      if constexpr (std::is_same_v<To, From>) {
        const auto bytes = static_cast<std::size_t>(count) * sizeof(To);
        if (past_caches)
          device_backend<To>::copy_past_caches(there, here, bytes);
        else
          std::memcpy(static_cast<void*>(there), here, bytes);
      } else {
        using whole = convert_elements<To, From, host_tile>;  // vectorised at -O2, unlike a plain loop
        const whole convert_run{there, here, count};
        for (std::int64_t i = 0; i * whole::each < count; ++i) convert_run(i);
      }
    } else if (to_step == 1) {
      for (std::int64_t e = 0; e < count; ++e) there[e] = convert<To>(here[e * from_step]);
    } else if (from_step == 1) {
      for (std::int64_t e = 0; e < count; ++e) there[e * to_step] = convert<To>(here[e]);
    } else {
      for (std::int64_t e = 0; e < count; ++e) there[e * to_step] = convert<To>(here[e * from_step]);
    }
  }
};

/// Copies a box on the host of which dimension a is the innermost of `from`, and the last one that of `to`,
/// in tiles. A tile is loaded along a and stored along the last dimension, by way of a buffer in the first
/// cache: tiles of arrays whose rows are a power of two apart would evict their own lines.
template <class To, class From>
struct transpose_blocks {
  static constexpr std::int64_t edge = 32;

  To* to;
  const From* from;
  std::int64_t size_a, to_a, from_a;
  std::int64_t size_b, to_b, from_b;
  std::int64_t tiles_a, tiles_b;
  box_places others;

  void operator()(std::int64_t tile) const {
    const std::int64_t a = tile % tiles_a * edge;
    const std::int64_t b = tile / tiles_a % tiles_b * edge;
    std::int64_t there = a * to_a + b * to_b, here = a * from_a + b * from_b;
    others(tile / tiles_a / tiles_b, there, here);
    const std::int64_t in_a = std::min(edge, size_a - a), in_b = std::min(edge, size_b - b);
    From held[edge][edge + 1];
    for (std::int64_t v = 0; v < in_b; ++v)
      for (std::int64_t u = 0; u < in_a; ++u) held[v][u] = from[here + v * from_b + u * from_a];
    for (std::int64_t u = 0; u < in_a; ++u)
      for (std::int64_t v = 0; v < in_b; ++v) to[there + u * to_a + v * to_b] = convert<To>(held[v][u]);
  }
};

}  // namespace ferry::kernels
