// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/find_places.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/cache/detail/row_directory.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>

namespace ferry::kernels {

/// The places of a team's items.
struct team_places {
  static constexpr int most = 256;
  std::int64_t place[most];
};

/// out[i] = the row of item i, which a team looks up first: find_places and gather_rows in one kernel, where
/// uses are not counted. Hits and misses are counted: the first item adds all items to the hits, and an item
/// that is no hit subtracts itself, so that a batch of hits adds to one counter once. The sums are right
/// after the kernel.
///
/// Device mapping: a team has `items_per_team` neighbouring items. Its first threads look one up each; then
/// all threads move the units of its rows, row-major, of which four loads of a thread come before the first
/// store. While one team looks up, others of the multiprocessor move.
template <class Unit, class Source>
struct gather_found {
  static constexpr int team_size = 256;
  static constexpr int at_once = 4;

  const void* table;
  std::int64_t table_stride;
  void* out;
  std::int64_t out_stride;
  detail::fast_divisor width;
  Source source;
  row_directory directory;
  place_rule rule;
  std::uint64_t* tallies;
  std::int64_t items;
  std::int64_t items_per_team;  ///< at most team_places::most
  bool wide;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& places = team.template shared<team_places>();
    const std::int64_t first = team.league_rank() * items_per_team;
    const std::int64_t count = items - first < items_per_team ? items - first : items_per_team;
    for (std::int64_t i = team.team_rank(); i < count; i += team_size) places.place[i] = look_up(first + i);
    team.team_barrier();
    if (wide)
      move<opaque16>(places, team.team_rank(), first, count);
    else
      move<Unit>(places, team.team_rank(), first, count);
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t look_up(std::int64_t item) const {
    const std::int64_t row = source.row(item, true);
    const std::int64_t slot = row < 0 ? -1 : directory.find(row);
    std::uint64_t* counter = tallies + (item & (detail::tally_room - 1));
    if (item == 0) Kokkos::atomic_add(counter, static_cast<std::uint64_t>(items));
    if (slot < 0) {
      Kokkos::atomic_sub(counter, std::uint64_t{1});
      if (row >= 0) Kokkos::atomic_add(counter + detail::tally_room, std::uint64_t{1});
    }
    return row < 0 ? -1 : rule.of(row, slot);
  }

  template <class Any>
  KOKKOS_FORCEINLINE_FUNCTION void move(const team_places& places, int rank, std::int64_t first,
                                        std::int64_t count) const {
    constexpr std::int64_t threads = team_size;
    const std::int64_t units = count * width.divisor();
    for (std::int64_t begin = rank; begin < units; begin += at_once * threads) {
      Any unit[at_once];
      std::int64_t target[at_once];
      for (int k = 0; k < at_once; ++k) {
        const std::int64_t i = begin + k * threads;
        target[k] = -1;
        if (i >= units) continue;
        const std::int64_t item = width.quotient(i);
        const std::int64_t column = i - item * width.divisor();
        const std::int64_t place = places.place[item];
        if (place < 0) continue;
        unit[k] = static_cast<const Any*>(table)[place * table_stride + column];
        target[k] = (first + item) * out_stride + column;
      }
      for (int k = 0; k < at_once; ++k)
        if (target[k] >= 0) static_cast<Any*>(out)[target[k]] = unit[k];
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// out[i] = the row of source item i. `table` is the virtual table of `rule`.
template <class Exec, class T, class TableSpace, class Out, class OutSpace, class Source>
void launch_gather_found(launch_context<Exec>& call, const row_cache& cache, const std::string& label,
                         const array_ref<T, TableSpace>& table, const array_ref<Out, OutSpace>& out,
                         const Source& source, const kernels::place_rule& rule, std::int64_t items) {
  using kernel = kernels::gather_found<unit_of<Out>, Source>;
  const bool wide = in_wide_units(table, out);
  const auto table_units = in_units(table, wide);
  const auto out_units = in_units(out, wide);
  std::int64_t items_per_team = kernels::team_places::most;
  for (const std::int64_t teams = call.exec().concurrency() / kernel::team_size;
       items_per_team > 16 && items < items_per_team * teams;)
    items_per_team /= 2;
  const tool_kernel reported(call.exec(), label);
  execution_backend<Exec>::launch_blocks(
      call.exec(), label, static_cast<int>((items + items_per_team - 1) / items_per_team), kernel::team_size,
      kernel{table_units.data, table_units.stride, out_units.data, out_units.stride,
             fast_divisor(out_units.width), source, cache.memory.book.directory, rule,
             cache.memory.book.tallies, items, items_per_team, wide});
}

}  // namespace ferry::detail
