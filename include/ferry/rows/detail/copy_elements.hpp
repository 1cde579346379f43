// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/tile.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/extents.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Row-major position -> offset in a strided array. Dense neighbouring extents are merged beforehand, so a
/// contiguous array has one extent.
struct strided_places {
  std::int64_t extents[max_rank] = {};
  std::int64_t strides[max_rank] = {};
  int rank = 0;

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position) const {
    std::int64_t place = 0;
    for (int d = rank - 1; d > 0; --d) {
      const std::int64_t outer = position / extents[d];
      place += (position - outer * extents[d]) * strides[d];
      position = outer;
    }
    return place + position * strides[0];
  }
};

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

/// Copies a contiguous block in 16-byte units by a kernel, for memory on which DMA is slow.
template <class Unit>
struct copy_units {
  Unit* target;
  const Unit* source;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { target[i] = source[i]; }
};

}  // namespace ferry::kernels
