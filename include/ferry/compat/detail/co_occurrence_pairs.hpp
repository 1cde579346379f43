// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The pairs of neighbouring tokens: for each of `count` positions from `first` on and each distance from 1
/// to `window`, the key left * classes + right of the earlier and the later token, and with two `sides` the
/// key of the reverse pair. Slots without a pair have the key -1. One thread for each position.
struct co_occurrence_pairs {
  const std::int64_t* tokens;
  std::int64_t first;
  std::int64_t window;
  std::int64_t sides;
  std::int64_t classes;
  bool by_distance;
  std::int64_t* keys;  ///< [count * window * sides]
  double* weights;     ///< 1, or 1 / distance

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t position = first + i;
    const std::int64_t right = tokens[position];
    bool open = right >= 0;
    for (std::int64_t distance = 1; distance <= window; ++distance) {
      const std::int64_t left = open && position >= distance ? tokens[position - distance] : -1;
      open = open && left >= 0;
      const double weight = by_distance ? 1.0 / static_cast<double>(distance) : 1.0;
      const std::int64_t slot = (i * window + distance - 1) * sides;
      for (std::int64_t side = 0; side < sides; ++side) {
        const std::int64_t key = side == 0 ? left * classes + right : right * classes + left;
        keys[slot + side] = open ? key : -1;
        weights[slot + side] = weight;
      }
    }
  }
};

/// The largest of some tokens.
struct largest_token {
  const std::int64_t* tokens;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& largest) const {
    if (tokens[i] > largest) largest = tokens[i];
  }
};

/// Takes keys apart: row = key / classes, column = key % classes.
struct split_keys {
  const std::int64_t* keys;
  std::int64_t classes;
  std::int64_t* rows;
  std::int64_t* columns;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    rows[i] = keys[i] / classes;
    columns[i] = keys[i] % classes;
  }
};

}  // namespace ferry::kernels
