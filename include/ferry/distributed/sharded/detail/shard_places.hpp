// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/sharding.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

namespace ferry::kernels {

/// Ranks whose shards one kernel can read. Their places are arguments of the kernel.
inline constexpr int most_shards = 64;

/// The places of the rows of a sharded table: how many units after the beginning of the lowest shard.
template <class Spread>
struct shard_places {
  Spread spread;
  std::int64_t rows;
  int ranks;
  int only;             ///< the shard that has all rows, -1 for none
  std::int64_t stride;  ///< units from a row of a shard to the next
  std::int64_t begin[most_shards];

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t row) const {
    const int owner = only >= 0 ? only : spread.owner(row, rows, ranks);
    return begin[owner] + spread.local_row(row, rows, ranks) * stride;
  }
};

/// A source of rows of a sharded table for the kernels that gather. Its rows are the places of the rows, so
/// the table's stride is one unit.
template <class Source, class Spread>
struct rows_of_shards {
  Source source;
  shard_places<Spread> places;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t item, bool record) const {
    const std::int64_t row = source.row(item, record);
    return row < 0 ? row : places(row);
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t item) const { return source.position(item); }
};

/// A sharding whose owners the host finds, as kernels read it: a number for each row, of its place in the
/// shard of its owner and the owner.
struct listed_sharding {
  static constexpr int owner_bits = 20;
  const std::uint64_t* numbers = nullptr;

  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t row, std::int64_t, int) const {
    return static_cast<int>(numbers[row] & ((std::uint64_t{1} << owner_bits) - 1));
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t, int) const {
    return static_cast<std::int64_t>(numbers[row] >> owner_bits);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// A sharding as kernels call it.
template <class Spread>
using kernel_sharding = std::conditional_t<runs_in_kernels<Spread>, Spread, kernels::listed_sharding>;

/// The numbers of a table's rows in the memory of each device whose kernels look for owners: 8 bytes for each
/// row, made when they first do.
class owner_lists {
 public:
  template <class Exec, class Table>
  kernels::listed_sharding local_list(const Exec& exec, const Table& table) {
    using list = tensor<std::uint64_t, near_space<Exec>>;
    const std::lock_guard lock(guard_);
    std::shared_ptr<void>& memory = lists_[execution_backend<Exec>::device_of(exec)];
    if (memory == nullptr) {
      std::vector<std::uint64_t> numbers(table.rows());
      for (std::size_t r = 0; r < numbers.size(); ++r) {
        const auto row = static_cast<std::int64_t>(r);
        numbers[r] = static_cast<std::uint64_t>(table.local_row(row))
                         << kernels::listed_sharding::owner_bits |
                     static_cast<std::uint64_t>(table.owner(row));
      }
      auto owners = std::make_shared<list>("owners of rows", memory_home(exec), numbers.size());
      if (!numbers.empty()) copy(exec, numbers, *owners).join();
      memory = std::move(owners);
    }
    return {static_cast<const list*>(memory.get())->data()};
  }

 private:
  std::mutex guard_;
  std::map<int, std::shared_ptr<void>> lists_;  ///< by device
};

/// The sharding of a table for kernels of the instance.
template <class Exec, class Table>
auto sharding_for_kernels([[maybe_unused]] const Exec& exec, const Table& table) {
  if constexpr (runs_in_kernels<typename Table::sharding_type>)
    return table.sharding();
  else if constexpr (requires { table.stored(); })
    return table.stored().owners().local_list(exec, table);
  else
    return table.owners().local_list(exec, table);
}

}  // namespace ferry::detail

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
