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
  bool is_packed = false;  ///< few ranks and short chunks: a thread counts in one word, see packed_counts

  /// Calls use(owner, position, row) for the positions of a chunk that have a row, in their order.
  template <class Use>
  KOKKOS_FORCEINLINE_FUNCTION void for_each(std::int64_t chunk, bool record, const Use& use) const {
    const std::int64_t first = chunk * length;
    const std::int64_t last = first + length < positions ? first + length : positions;
    for (std::int64_t p = first; p < last; p += at_once) {
      std::int64_t row[at_once];
      for (int k = 0; k < at_once; ++k) row[k] = p + k < last ? source.row(p + k, record) : -1;
      for (int k = 0; k < at_once; ++k)
        if (row[k] >= 0) use(ranks == 1 ? 0 : spread.owner(row[k], rows, ranks), p + k, row[k]);
    }
  }
  /// The count of an owner's positions in a chunk: all chunks of an owner follow each other.
  KOKKOS_FUNCTION std::int64_t cell(int owner, std::int64_t chunk) const { return owner * chunks + chunk; }
};

/// Counts of at most 8 owners in a register, each below 256: counts in memory would be a chain of loads and
/// stores.
struct packed_counts {
  static constexpr int most_owners = 8;
  static constexpr std::int64_t most = 255;

  std::uint64_t word = 0;

  KOKKOS_FORCEINLINE_FUNCTION std::uint32_t of(int owner) const {
    return static_cast<std::uint32_t>(word >> 8 * owner & 255);
  }
  KOKKOS_FORCEINLINE_FUNCTION void add(int owner) { word += std::uint64_t{1} << 8 * owner; }
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
  /// Adds a position.
  struct add_packed {
    packed_counts& tally;
    KOKKOS_FORCEINLINE_FUNCTION void operator()(int owner, std::int64_t, std::int64_t) const {
      tally.add(owner);
    }
  };
  KOKKOS_FUNCTION void operator()(std::int64_t chunk) const {
    if (positions.is_packed) {
      packed_counts tally;
      positions.for_each(chunk, true, add_packed{tally});
      for (int r = 0; r < positions.ranks; ++r) counts[positions.cell(r, chunk)] = tally.of(r);
      return;
    }
    for (int r = 0; r < positions.ranks; ++r) counts[positions.cell(r, chunk)] = 0;
    positions.for_each(chunk, true, add{*this, chunk});
  }
};

/// Writes the positions and their rows in the shards of their owners, in groups by owner, and where the group
/// of each owner ends. `counts` tells how many of a cell are still to come.
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
      kernel.put(static_cast<std::int64_t>(kernel.sums[cell] - kernel.counts[cell]--), position, row);
    }
  };
  struct write_packed {
    const place_owned& kernel;
    std::int64_t chunk;
    packed_counts& tally;
    KOKKOS_FORCEINLINE_FUNCTION void operator()(int owner, std::int64_t position, std::int64_t row) const {
      const std::int64_t cell = kernel.positions.cell(owner, chunk);
      const std::uint32_t before = kernel.counts[cell] - tally.of(owner);
      tally.add(owner);
      kernel.put(static_cast<std::int64_t>(kernel.sums[cell] - before), position, row);
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION void put(std::int64_t item, std::int64_t position, std::int64_t row) const {
    place[item] = position;
    local[item] = positions.spread.local_row(row, positions.rows, positions.ranks);
  }
  KOKKOS_FUNCTION void operator()(std::int64_t chunk) const {
    for (std::int64_t r = chunk; r < positions.ranks; r += positions.chunks)
      ends[r] = static_cast<std::int64_t>(sums[(r + 1) * positions.chunks - 1]);
    if (positions.is_packed) {
      packed_counts tally;
      positions.for_each(chunk, false, write_packed{*this, chunk, tally});
    } else {
      positions.for_each(chunk, false, write{*this, chunk});
    }
  }
};

}  // namespace ferry::kernels
