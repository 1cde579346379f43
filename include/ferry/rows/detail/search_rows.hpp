// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

/// The rows of a small batch and their positions without a sort: every row is compared with all of the batch.
namespace ferry::kernels {

/// Findings of a search, a source of the row kernels. Item i is position i: it has its row if no earlier
/// position has it. A team has every `teams`-th item, so most rows with many values have different teams.
struct found_rows {
  static constexpr int most_items = 16;  ///< of a team

  const row_segment* segments = nullptr;  ///< of the team's items
  const std::uint16_t* order = nullptr;   ///< the positions of the rows
  int teams = 1;

  KOKKOS_FUNCTION static bool blocked() { return false; }
  KOKKOS_FUNCTION row_segment segment(std::int64_t i) const { return segments[static_cast<int>(i) / teams]; }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const { return order[k]; }
};

/// Finds the rows of a batch and runs `kernel`, a kernel on found_rows, in one launch. All teams look at all
/// indices, so each knows of a bad one before it writes. A row's positions come in the order of the batch.
///
/// Device mapping: a team keeps the row numbers of all positions in its shared memory. A warp compares the
/// row of an item with them, four a lane, and stops at an earlier position of that row. All threads sum rows
/// with many values, one for each piece and column, and run the kernel on the other items, a work item each.
template <class Kernel, class Source>
struct search_rows {
  static constexpr int team_size = 512;
  static constexpr std::uint32_t no_row = 0xffffffff;  ///< tables have fewer rows

  Kernel kernel;  ///< its source is that of the team
  Source source;  ///< an index_rows
  int positions;
  int teams;
  int per_item;  ///< work items

  /// Teams of a batch: as many as are at work at the same time, or more if each would have too many items.
  static int teams_of(int positions, int teams_at_once) {
    const int least = (positions + found_rows::most_items - 1) / found_rows::most_items;
    return std::min(positions, std::max(least, teams_at_once));
  }
  [[nodiscard]] std::size_t bytes() const { return sizeof(memory) + 6 * static_cast<std::size_t>(room()); }

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& batch = team.template dynamic_shared<memory>();
    if (team.team_rank() == 0) batch.is_bad = batch.order_size = 0;
    team.team_barrier();
    load_rows(team, batch);
    team.team_barrier();
    if (batch.is_bad != 0) return;
    Kernel team_kernel = kernel;
    team_kernel.source = {batch.segments, order(batch), teams};
    const int size = (positions - team.league_rank() + teams - 1) / teams;
    const int warps = team.team_size() / Team::lanes;
    for (int item = team.team_rank() / Team::lanes; item < size; item += warps) find(team, batch, item);
    team.team_barrier();
    if constexpr (sums)
      for (int item = 0; item < size; ++item)
        if (is_long(batch.segments[item]) && !kernel.operation.is_refused())
          update_long(team, batch, team_kernel, item);
    for (int k = team.team_rank(); k < size * per_item; k += team.team_size()) {
      const int item = k / per_item;
      if (!sums || !is_long(batch.segments[item]))
        team_kernel(std::int64_t{team.league_rank() + item * teams} * per_item + (k - item * per_item));
    }
  }

 private:
  using compute = typename Kernel::compute;
  using tile = typename Kernel::tile;

  static constexpr bool sums = Kernel::duplicates_type::combines;
  static constexpr int sum_bytes = 16384;

  struct alignas(16) four_rows {
    std::uint32_t row[4];
  };
  /// A team's shared memory. The row numbers of all positions follow, then the order.
  struct alignas(16) memory {
    unsigned char sums[sum_bytes];
    row_segment segments[found_rows::most_items];  ///< of the items
    int is_bad;                                    ///< not 0: a bad index exists
    int order_size;                                ///< positions in the order
  };

  /// True if a row has many values, whose loads overlap.
  KOKKOS_FORCEINLINE_FUNCTION static bool is_long(const row_segment& segment) {
    return segment.end - segment.begin >= 8;
  }
  /// Whole steps of a warp of up to 64 lanes.
  KOKKOS_FORCEINLINE_FUNCTION int room() const { return (positions + 255) / 256 * 256; }
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t* rows(memory& batch) {
    return reinterpret_cast<std::uint32_t*>(&batch + 1);
  }
  KOKKOS_FORCEINLINE_FUNCTION std::uint16_t* order(memory& batch) const {
    return reinterpret_cast<std::uint16_t*>(rows(batch) + room());
  }

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void load_rows(const Team& team, memory& batch) const {
    constexpr int at_once = 4;  // loads of a thread under way
    for (int first = team.team_rank(); first < room(); first += at_once * team.team_size()) {
      std::int64_t row[at_once];
      for (int k = 0; k < at_once; ++k) {
        const int position = first + k * team.team_size();
        row[k] = position < positions ? source.row(position, false) : -1;
      }
      for (int k = 0; k < at_once; ++k) {
        const int position = first + k * team.team_size();
        if (position < room())
          rows(batch)[position] = row[k] < 0 ? no_row : static_cast<std::uint32_t>(row[k]);
        if (!Source::reports || row[k] >= 0 || position >= positions) continue;
        batch.is_bad = 1;
        if (team.league_rank() == 0) source.row(position, true);
      }
    }
  }

  /// Calls act(position, number) for a row's positions in [begin, end), by one warp. Returns their number.
  template <class Team, class Act>
  KOKKOS_FORCEINLINE_FUNCTION int for_each_position(const Team& team, memory& batch, std::uint32_t row,
                                                    int begin, int end, const Act& act) const {
    constexpr int group = 4 * Team::lanes;  // positions of a step
    const int lane = team.team_rank() % Team::lanes;
    int count = 0;
    for (int base = begin / group * group; base < end; base += group) {
      const int first = base + 4 * lane;
      const four_rows four = reinterpret_cast<const four_rows*>(rows(batch))[first / 4];
      bool equals[4], any = false;
      for (int e = 0; e < 4; ++e) {
        equals[e] = four.row[e] == row && first + e >= begin && first + e < end;
        any = any || equals[e];
      }
      if (team.vote(any) == 0) continue;
      int number = count;
      for (int e = 0; e < 4; ++e) {
        const std::uint32_t lanes = team.vote(equals[e]);
        number += Kokkos::Experimental::popcount_builtin(lanes & ((std::uint32_t{1} << lane) - 1));
        count += Kokkos::Experimental::popcount_builtin(lanes);
      }
      for (int e = 0; e < 4; ++e)
        if (equals[e]) act(first + e, number++);
    }
    return count;
  }

  /// Finds the segment of an item, by one warp.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void find(const Team& team, memory& batch, int item) const {
    const bool leads = team.team_rank() % Team::lanes == 0;
    const int position = team.league_rank() + item * teams;
    const std::uint32_t row = rows(batch)[position];
    const auto skip = [](int, int) {};
    if (leads) batch.segments[item] = {};
    if (row == no_row || for_each_position(team, batch, row, 0, position, skip) != 0) return;
    const int count = for_each_position(team, batch, row, position, positions, skip);
    if (leads) {
      const int begin = Kokkos::atomic_fetch_add(&batch.order_size, count);
      batch.segments[item] = {row, begin, begin + count};
    }
    team.warp_barrier();
    std::uint16_t* const slots = order(batch) + batch.segments[item].begin;
    if (count == 1) slots[0] = static_cast<std::uint16_t>(position);
    if (count > 1)
      for_each_position(team, batch, row, position, positions,
                        [&](int p, int number) { slots[number] = static_cast<std::uint16_t>(p); });
  }

  /// Updates a row with many values. Threads sum the tiles of its pieces, then a thread adds a tile's sums.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void update_long(const Team& team, memory& batch, const Kernel& team_kernel,
                                               int item) const {
    constexpr int elements = tile::elements, under_way = 8;
    const row_segment& segment = batch.segments[item];
    const piece_cut cut(static_cast<std::uint32_t>(segment.end - segment.begin));
    const auto pieces = static_cast<int>(cut.count);
    const int fit = sum_bytes / (pieces * static_cast<int>(sizeof(compute[elements])));
    const std::int64_t position = team.league_rank() + item * teams;
    const std::int64_t origin = first_column<tile>(team_kernel.operation, position, segment.row);
    auto* const totals = reinterpret_cast<compute(*)[elements]>(batch.sums);
    FERRY_NOT_UNROLLED
    for (int first = 0; first < per_item; first += fit) {
      const int tiles = per_item - first < fit ? per_item - first : fit;
      const auto column_of = [&](int t) { return origin + std::int64_t{first + t} * elements; };
      FERRY_NOT_UNROLLED
      for (int k = team.team_rank(); k < pieces * tiles; k += team.team_size()) {
        const int piece = k / tiles;
        const std::int64_t column = column_of(k - piece * tiles),
                           begin = segment.begin + std::int64_t{piece} * cut.size;
        const int live_elements = count_of<tile>(column, team_kernel.width);
        const auto load = [&](compute(&term)[elements], std::int64_t index) {
          load_value<tile, true>(term, team_kernel.source, index, team_kernel.values,
                                 team_kernel.values_stride, column, live_elements);
        };
        if (live_elements == 0) continue;
        const auto end = cut.end(static_cast<std::uint32_t>(piece),
                                 static_cast<std::uint32_t>(segment.end - segment.begin));
        compute sum[elements];
        load(sum, begin);
        add_terms<tile, under_way>(sum, begin + 1, segment.begin + end, live_elements, load);
        for (int e = 0; e < elements; ++e) totals[k][e] = sum[e];
      }
      team.team_barrier();
      FERRY_NOT_UNROLLED
      for (int t = team.team_rank(); t < tiles; t += team.team_size()) {
        const int live_elements = count_of<tile>(column_of(t), team_kernel.width);
        if (live_elements == 0) continue;
        const auto load = [&](compute(&term)[elements], std::int64_t piece) {
          for (int e = 0; e < elements; ++e) term[e] = totals[piece * tiles + t][e];
        };
        compute sum[elements];
        load(sum, 0);
        add_terms<tile, 1>(sum, 1, pieces, live_elements, load);
        team_kernel.update_by_sum(position, segment, column_of(t), sum, live_elements);
      }
      team.team_barrier();
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// True if small batches of these operands are searched: a device's, for rows in its own memory that need no
/// plan for anything else. Every team reads all indices, so they must not come over the link.
template <class Path, class Duplicates, class Update>
consteval bool may_search() {
  using access = typename Update::access_type;
  using job = typename Update::job_type;
  using batch = typename Update::batch_type;
  if constexpr (!access::is_strided || is_plan<batch> || is_every_row<batch> ||
                is_host_exec<typename Update::exec_type> || !in_batch_order<Path> || Duplicates::forbids ||
                in_any_order<Duplicates> || adjusts_values<Duplicates>)
    return false;
  else
    return Duplicates::needs_plan && !job::needs_whole_rows && !job::counts_rows &&
           std::is_same_v<typename access::memory_space, device_space> &&
           !std::is_same_v<typename batch::memory_space, mapped_space>;
}

/// The tile of the kernel: one that takes rows of any width if it can, for one kernel less to compile.
template <class Duplicates, class Job>
using searched_tile = std::conditional_t<Job::template takes_masks<Duplicates, kernels::found_rows>,
                                         kernels::masked_tile, kernels::packed_tile>;

/// True if this batch is small, and aligned so that the kernel can work in its tiles.
template <class Duplicates, class Update>
bool is_searched(const Update& update) {
  using backend = execution_backend<typename Update::exec_type>;
  const auto& table = update.job.table;
  const std::int64_t positions = update.batch.rows();
  return positions > 0 && positions <= backend::tuning(update.exec).positions_searched &&
         table.width() != 0 && table.width() <= std::numeric_limits<std::int16_t>::max() &&
         table.rows() <= std::numeric_limits<std::int32_t>::max() &&
         (searched_tile<Duplicates, typename Update::job_type>::masked ||
          update.job.template packs<Duplicates>(update.values));
}

template <class Duplicates, int Fields = -1, class Exec, class Job, class Source, class Values>
void launch_search(const Exec& exec, const std::string& label, const Job& job, const Source& source,
                   const Values& values) {
  constexpr int fields = Fields < 0 ? Job::min_fields : Fields;
  if constexpr (fields < Job::max_fields)
    if (job.fields != fields) return launch_search<Duplicates, fields + 1>(exec, label, job, source, values);
  const auto rows = job.template kernel<Exec, Duplicates, searched_tile<Duplicates, Job>, fields>(
      kernels::found_rows{}, values.rows(), values);
  using kernel = kernels::search_rows<std::remove_const_t<decltype(rows)>, Source>;
  const auto count = static_cast<int>(values.rows());
  const int at_once = static_cast<int>(execution_backend<Exec>::tuning(exec).teams_that_search);
  const kernel search{rows, source, count, kernel::teams_of(count, at_once),
                      static_cast<int>(rows.per_item())};
  before_writing();
  const tool_kernel reported(exec, label);
  execution_backend<Exec>::launch_blocks(exec, label, search.teams, kernel::team_size, search,
                                         search.bytes());
}

}  // namespace ferry::detail
