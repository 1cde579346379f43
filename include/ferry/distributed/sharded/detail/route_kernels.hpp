// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// The kernels that group the positions of a batch by the owners of their rows, in the order of the batch for
/// each owner. Positions come in chunks of neighbours, one for each iteration: the first kernel counts what
/// each chunk has for each owner, running sums of the counts give the places, and the second kernel writes
/// there. So the order does not depend on which iteration runs first.
namespace ferry::kernels {

/// The positions of a batch in chunks, and the owners of their rows. `source` gives the row of a position.
template <class Source, class Spread>
struct owned_positions {
  /// Rows that an iteration asks for before it uses the first: they come from memory at once.
  static constexpr int at_once = 8;

  Source source;
  Spread spread;
  std::int64_t rows;
  std::int64_t positions;
  std::int64_t length;  ///< of a chunk
  std::int64_t chunks;
  int ranks;

  /// Calls use(owner, position, row) for the positions of a chunk that have a row, in their order.
  template <class Use>
  KOKKOS_FORCEINLINE_FUNCTION void for_each(std::int64_t chunk, bool record, const Use& use) const {
    const std::int64_t first = chunk * length;
    const std::int64_t last = first + length < positions ? first + length : positions;
    for (std::int64_t p = first; p < last; p += at_once) {
      std::int64_t row[at_once];
      for (int k = 0; k < at_once; ++k) row[k] = p + k < last ? source.row(p + k, record) : -1;
      for (int k = 0; k < at_once; ++k)
        if (row[k] >= 0) use(spread.owner(row[k], rows, ranks), p + k, row[k]);
    }
  }
  /// The count of an owner's positions in a chunk: all chunks of an owner follow each other.
  KOKKOS_FUNCTION std::int64_t cell(int owner, std::int64_t chunk) const { return owner * chunks + chunk; }
};

/// counts[cell(owner, chunk)] = the positions of the chunk whose rows the owner has. Reports bad indices.
template <class Source, class Spread>
struct count_owned {
  owned_positions<Source, Spread> positions;
  std::uint32_t* counts;

  /// Adds a position.
  struct add {
    const count_owned& kernel;
    std::int64_t chunk;
    KOKKOS_FORCEINLINE_FUNCTION void operator()(int owner, std::int64_t, std::int64_t) const {
      ++kernel.counts[kernel.positions.cell(owner, chunk)];
    }
  };
  KOKKOS_FUNCTION void operator()(std::int64_t chunk) const {
    for (int r = 0; r < positions.ranks; ++r) counts[positions.cell(r, chunk)] = 0;
    positions.for_each(chunk, true, add{*this, chunk});
  }
};

/// The terms of the running sums.
struct owned_counts {
  const std::uint32_t* counts = nullptr;

  KOKKOS_FUNCTION std::uint64_t operator()(std::int64_t cell) const { return counts[cell]; }
};

/// Writes the positions and their rows in the shards of their owners, in groups by owner, and where the group
/// of each owner ends. `counts` tells how many of a cell are still to come, and is 0 afterwards.
template <class Source, class Spread>
struct place_owned {
  owned_positions<Source, Spread> positions;
  std::uint32_t* counts;
  const std::uint64_t* sums;
  std::int64_t* place;
  std::int64_t* local;
  std::int64_t* ends;  ///< [ranks] host memory

  /// Writes a position.
  struct write {
    const place_owned& kernel;
    std::int64_t chunk;
    KOKKOS_FORCEINLINE_FUNCTION void operator()(int owner, std::int64_t position, std::int64_t row) const {
      const std::int64_t cell = kernel.positions.cell(owner, chunk);
      const auto item = static_cast<std::int64_t>(kernel.sums[cell] - kernel.counts[cell]--);
      kernel.place[item] = position;
      kernel.local[item] =
          kernel.positions.spread.local_row(row, kernel.positions.rows, kernel.positions.ranks);
    }
  };
  KOKKOS_FUNCTION void operator()(std::int64_t chunk) const {
    for (std::int64_t r = chunk; r < positions.ranks; r += positions.chunks)
      ends[r] = static_cast<std::int64_t>(sums[(r + 1) * positions.chunks - 1]);
    positions.for_each(chunk, false, write{*this, chunk});
  }
};

}  // namespace ferry::kernels
