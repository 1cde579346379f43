// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/own_bounds.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/unit_walk.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// Gathers within a device by a list of rows in pageable memory.
namespace ferry::kernels {

/// out[p] = table[row of p], by indices behind the link, which reads neighbouring bytes fast.
///
/// Device mapping: a team has some neighbouring positions. Its threads read the indices once, a thread each,
/// and keep the rows in shared memory; then all threads move units of these rows, several of a thread under
/// way. Strides are in units.
template <class Named>
struct gather_listed {
  static constexpr int team_size = 512;
  static constexpr int at_once = 4;  ///< units of a thread under way

  const opaque16* table;
  std::int64_t table_stride;
  opaque16* out;
  std::int64_t out_stride;
  int units;    ///< of a row, at most as many as a team has threads
  Named named;  ///< an index_rows
  std::int64_t items;

  struct list {
    std::int64_t rows[team_size];
  };

  /// Items of a team, for rows of `units` units.
  KOKKOS_FORCEINLINE_FUNCTION static int items_of_team(int threads, int units) {
    const int fit = at_once * unit_walk::rows_at_once(threads, units);
    return fit < threads ? fit : threads;
  }

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& memory = team.template shared<list>();
    const int team_items = items_of_team(team.team_size(), units);
    const std::int64_t first = std::int64_t{team.league_rank()} * team_items;
    const auto size = static_cast<int>(items - first < team_items ? items - first : team_items);
    if (team.team_rank() < size) memory.rows[team.team_rank()] = named.row(first + team.team_rank(), true);
    team.team_barrier();
    const unit_walk walk(team, units);
    if (walk.row < 0) return;
    std::int64_t row[at_once];
    opaque16 bits[at_once];
    for (int k = 0; k < at_once; ++k) {
      const int place = walk.row + k * walk.rows;
      row[k] = place < size ? memory.rows[place] : -1;
    }
    // Row 0 in place of none: a load that depends on nothing needs no branch.
    for (int k = 0; k < at_once; ++k) bits[k] = table[(row[k] < 0 ? 0 : row[k]) * table_stride + walk.unit];
    for (int k = 0; k < at_once; ++k)
      if (row[k] >= 0) out[(first + (walk.row + k * walk.rows)) * out_stride + walk.unit] = bits[k];
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// True if such a list of indices may be gathered by gather_listed.
template <class Bounds, class Exec, class TableSpace, class Out, class OutSpace, class Value, class Space>
inline constexpr bool may_gather_listed =
    !is_host_exec<Exec> && std::is_same_v<TableSpace, device_space> &&
    std::is_same_v<OutSpace, device_space> && std::is_same_v<Space, pageable_space> &&
    std::is_same_v<Out, std::remove_const_t<Value>> && kernels::is_own_bounds<Bounds>;

/// Gathers rows of at most 8 KiB by a list in pageable memory: its numbers cross the link in 32 bits. False,
/// and nothing is enqueued, if one of them needs more bits, or if the rows are not whole units.
template <class Bounds, class Exec, class T, class Index, class Out, class OutSpace>
bool gather_listed(launch_context<Exec>& call, const std::string& label,
                   const array_ref<T, device_space>& table, const array_ref<Index, pageable_space>& indices,
                   const array_ref<Out, OutSpace>& out) {
  const std::int64_t count = indices.rows();
  if (count == 0 || table.rows() == 0 || count > most_narrow_indices || !in_wide_units(table, out))
    return false;
  const auto* const list = narrow_indices(call, indices);
  if (list == nullptr) return false;
  using named_rows = kernels::index_rows<std::remove_cvref_t<decltype(*list)>, Bounds>;
  using kernel = kernels::gather_listed<named_rows>;
  const auto rows = as_units<kernels::opaque16>(table);
  const auto batch = as_units<kernels::opaque16>(out);
  const auto units = static_cast<int>(batch.width);
  const int team_items = kernel::items_of_team(kernel::team_size, units);
  const tool_kernel reported(call.exec(), label);
  execution_backend<Exec>::launch_blocks(
      call.exec(), label, static_cast<int>((count + team_items - 1) / team_items), kernel::team_size,
      kernel{rows.data,
             rows.stride,
             batch.data,
             batch.stride,
             units,
             {list, table.rows(), Bounds::reports ? call.report() : report_writer{}},
             count});
  return true;
}

}  // namespace ferry::detail
