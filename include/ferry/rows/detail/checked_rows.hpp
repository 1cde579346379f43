// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/apply_rows.hpp>
#include <ferry/rows/detail/gather_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/row_operations.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace ferry::kernels {

/// How a kernel's threads load a unit of a row before they may write: of other kernels nothing. For a kernel,
/// and units of the rows of several items:
///
///   at_once                 the number of items
///   held                    what a thread keeps of an item; `row` is its row, -1 if it has none
///   row_of(kernel, item)    the row of an item
///   load(kernel, held, item, unit)      loads what lies where the item says
///   load_row(kernel, held, item, unit)  loads what lies in its row
///   write(kernel, held, item, unit)     does what is left
template <class Kernel>
struct rows_ahead {};

template <class Kernel>
inline constexpr bool loads_ahead = requires {
  rows_ahead<Kernel>::at_once;
};

/// Row p of a batch moves to the row of position p.
template <class Unit, class Index, class Bounds>
struct rows_ahead<gather_rows<Unit, index_destinations<Index, Bounds>>> {
  using kernel_type = gather_rows<Unit, index_destinations<Index, Bounds>>;
  static constexpr int at_once = 4;

  struct held {
    opaque16 bits;
    std::int64_t row;
  };

  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t row_of(const kernel_type& kernel, std::int64_t item) {
    return kernel.source.position(item);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void load(const kernel_type& kernel, held& part, std::int64_t item,
                                               std::int64_t unit) {
    const std::int64_t place = item * kernel.table_stride + unit;
    if (kernel.wide) {
      part.bits = static_cast<const opaque16*>(kernel.table)[place];
    } else {
      const Unit narrow = static_cast<const Unit*>(kernel.table)[place];
      std::memcpy(&part.bits, &narrow, sizeof narrow);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static void load_row(const kernel_type&, held&, std::int64_t, std::int64_t) {}
  KOKKOS_FORCEINLINE_FUNCTION static void write(const kernel_type& kernel, const held& part, std::int64_t,
                                                std::int64_t unit) {
    if (part.row < 0) return;
    const std::int64_t place = part.row * kernel.out_stride + unit;
    if (kernel.wide) {
      static_cast<opaque16*>(kernel.out)[place] = part.bits;
    } else {
      Unit narrow;
      std::memcpy(&narrow, &part.bits, sizeof narrow);
      static_cast<Unit*>(kernel.out)[place] = narrow;
    }
  }
};

/// Items are positions, with one value each.
template <class Compute, class Tile, class Duplicates, class Index, class Bounds, class Value,
          class Operation>
struct rows_ahead<apply_rows<Compute, Tile, Duplicates, index_rows<Index, Bounds>, Value, Operation>> {
  using kernel_type = apply_rows<Compute, Tile, Duplicates, index_rows<Index, Bounds>, Value, Operation>;
  static constexpr int at_once = Operation::arrays <= 2 ? 2 : 1;

  struct held {
    std::int64_t row;
    Compute value[Tile::elements];
    typename Operation::template held<Tile, Compute> inputs;
  };

  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t row_of(const kernel_type& kernel, std::int64_t item) {
    return kernel.source.row(item, false);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void load(const kernel_type& kernel, held& part, std::int64_t item,
                                               std::int64_t unit) {
    if constexpr (!Tile::masked) load_value(kernel, part, item, unit * Tile::elements, Tile::elements);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void load_row(const kernel_type& kernel, held& part, std::int64_t item,
                                                   std::int64_t unit) {
    if (part.row < 0) return;
    const std::int64_t column = column_of(kernel, part, item, unit);
    const int count = count_of<Tile>(column, kernel.width);
    if (count == 0) {
      part.row = -1;
      return;
    }
    if constexpr (Tile::masked) load_value(kernel, part, item, column, count);
    kernel.operation.load(part.inputs, part.row, column, count);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void write(const kernel_type& kernel, held& part, std::int64_t item,
                                                std::int64_t unit) {
    if (part.row < 0 || kernel.operation.is_refused()) return;
    const std::int64_t column = column_of(kernel, part, item, unit);
    kernel.operation.finish(part.inputs, item, part.row, column, part.value,
                            count_of<Tile>(column, kernel.width));
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t column_of(const kernel_type& kernel, const held& part,
                                                            std::int64_t item, std::int64_t unit) {
    return first_column<Tile>(kernel.operation, item, part.row) + unit * Tile::elements;
  }
  KOKKOS_FORCEINLINE_FUNCTION static void load_value(const kernel_type& kernel, held& part, std::int64_t item,
                                                     std::int64_t column, int count) {
    load_tile<Tile>(part.value, kernel.values + item * kernel.values_stride + column, count);
  }
};

/// How the threads of a team walk over rows of some units: a division for each thread, none for each unit.
/// Rows of a thread lie `rows` apart.
struct unit_walk {
  int rows;           ///< that the team begins at once
  int row = 0;        ///< that of the thread among these; -1: it has none
  std::int64_t unit;  ///< the first one of the thread

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION unit_walk(const Team& team, std::int64_t units)
      : rows(rows_at_once(team.team_size(), units)), unit(team.team_rank()) {
    if (units >= team.team_size()) return;
    const auto width = static_cast<int>(units);
    row = team.team_rank() / width;
    unit = team.team_rank() - row * width;
    if (row >= rows) row = -1;
  }
  KOKKOS_FORCEINLINE_FUNCTION static int rows_at_once(int threads, std::int64_t units) {
    return units < threads ? threads / static_cast<int>(units) : 1;
  }
};

// Small batches of checked indices without a plan: one launch looks for bad indices and writes the rows.

/// True if a thread of a team sees a bad index in its part of a batch, which has a position at least. The
/// first team records bad ones.
template <class Team, class Named>
KOKKOS_FORCEINLINE_FUNCTION bool sees_bad(const Team& team, const Named& named, std::int64_t positions) {
  constexpr int at_once = 8;  // indices of a thread under way
  const auto last = static_cast<int>(positions - 1);
  bool any = false;
  FERRY_NOT_UNROLLED
  for (int first = team.team_rank(); first <= last; first += at_once * team.team_size()) {
    // Nothing is decided or recorded here, or loads would wait for one another. Beyond the last position that
    // one is looked at once more.
    typename Named::index_type index[at_once];
    for (int k = 0; k < at_once; ++k) {
      const int position = first + k * team.team_size();
      index[k] = named.indices[position < last ? position : last];
    }
    bool bad = false;
    for (int k = 0; k < at_once; ++k) bad |= named.is_bad(index[k]);
    any |= bad;
    if (!bad || team.league_rank() != 0) continue;
    FERRY_NOT_UNROLLED
    for (int k = 0; k < at_once; ++k)
      if (const int position = first + k * team.team_size(); position <= last) named.row(position, true);
  }
  return any;
}

/// Runs `kernel` for each work item, unless a row of the batch is bad. All teams look at all indices, so each
/// knows before it writes; the first one reports.
///
/// Device mapping: the threads of all teams stride over the work items. Teams are few, because each reads the
/// whole batch. Threads of a kernel that can load before it may write look at indices while some units are
/// under way, see rows_ahead.
template <class Kernel, class Named>
struct checked_rows {
  static constexpr int team_size = 512;

  using ahead = rows_ahead<Kernel>;

  Kernel kernel;
  Named named;  ///< an index_rows
  std::int64_t positions;
  std::int64_t count;  ///< of work items; of units of a row if the kernel loads ahead
  int teams;

  struct verdict {
    int bad;
  };

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& batch = team.template shared<verdict>();
    if (team.team_rank() == 0) batch.bad = 0;
    team.team_barrier();
    if constexpr (loads_ahead<Kernel>) {
      const unit_walk walk(team, count);
      std::int64_t item = walk.row < 0 ? positions : std::int64_t{team.league_rank()} * walk.rows + walk.row;
      std::int64_t unit = walk.unit;
      const std::int64_t step = std::int64_t{teams} * walk.rows;
      constexpr int at_once = ahead::at_once;
      typename ahead::held part[at_once];
      load(part, item, step, unit);
      if (is_bad(team, batch)) return;
      while (item < positions) {
        for (int k = 0; k < at_once; ++k)
          if (item + k * step < positions) ahead::write(kernel, part[k], item + k * step, unit);
        unit += team.team_size();
        if (unit >= count) {
          unit = walk.unit;
          item += at_once * step;
        }
        load(part, item, step, unit);
      }
    } else {
      if (is_bad(team, batch)) return;
      const std::int64_t step = std::int64_t{teams} * team.team_size();
      for (std::int64_t i = std::int64_t{team.league_rank()} * team.team_size() + team.team_rank(); i < count;
           i += step)
        kernel(i);
    }
  }

 private:
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION bool is_bad(const Team& team, verdict& batch) const {
    if (sees_bad(team, named, positions)) batch.bad = 1;
    team.team_barrier();
    return batch.bad != 0;
  }
  /// Loads a unit of each of several items, those of an item after the numbers of all rows.
  template <class Held, int N>
  KOKKOS_FORCEINLINE_FUNCTION void load(Held (&part)[N], std::int64_t item, std::int64_t step,
                                        std::int64_t unit) const {
    for (int k = 0; k < N; ++k)
      part[k].row = item + k * step < positions ? ahead::row_of(kernel, item + k * step) : -1;
    for (int k = 0; k < N; ++k)
      if (item + k * step < positions) ahead::load(kernel, part[k], item + k * step, unit);
    for (int k = 0; k < N; ++k) ahead::load_row(kernel, part[k], item + k * step, unit);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail::schedule {

/// Few teams, which check the `positions` indices first.
template <class Named>
struct checked {
  Named named;
  std::int64_t positions;

  template <class Exec, class Functor>
  void enqueue(const Exec& exec, const std::string& label, std::int64_t items, std::int64_t per_item,
               const Functor& functor) const {
    using kernel = kernels::checked_rows<Functor, Named>;
    const auto& tuning = execution_backend<Exec>::tuning(exec);
    const tool_kernel reported(exec, label);
    const bool by_units = kernels::loads_ahead<Functor>;
    const std::int64_t count = by_units ? per_item : items * per_item;
    const std::int64_t blocks = (items * per_item + kernel::team_size - 1) / kernel::team_size;
    const auto teams = static_cast<int>(std::min(blocks, tuning.teams_that_check));
    execution_backend<Exec>::launch_blocks(exec, label, teams, kernel::team_size,
                                           kernel{functor, named, positions, count, teams});
  }
};

}  // namespace ferry::detail::schedule
