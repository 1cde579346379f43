// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/distributed/communicator/detail/host_values.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Where the rows of one batch lie: its positions grouped by the owner of their row, in the order of the
/// batch for each owner. Positions without a row are left out.
template <class Wire>
struct row_route {
  std::int64_t positions = 0;
  bool signed_indices = true;
  index_report report;               ///< bad indices, under bounds::check
  tensor<std::int64_t, Wire> place;  ///< [routed] the position
  tensor<std::int64_t, Wire> rows;   ///< [routed] its row in the shard of the owner
  bool once = false;                 ///< each row of an owner is named once, see route_once
  tensor<std::int64_t, Wire> slot;   ///< [positions] if `once`: where the position's row is, -1 for none
  std::vector<std::int64_t> begin;   ///< [ranks + 1] where the group of each owner begins
  bool everywhere = false;           ///< every rank owns every row: there is one group, for all of them

  [[nodiscard]] std::int64_t routed() const { return begin.back(); }
  /// The places of an owner, as [first, last).
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> group(int owner) const {
    if (everywhere) return {0, routed()};
    return {begin[static_cast<std::size_t>(owner)], begin[static_cast<std::size_t>(owner) + 1]};
  }
};

/// `row_at(p)` is the row of position p, -1 for none. Two passes: the first counts.
template <class Wire, class Table, class RowAt>
void group_by_owner(row_route<Wire>& route, const Table& table, std::int64_t positions, const RowAt& row_at) {
  using spread = typename Table::sharding_type;
  const auto ranks = static_cast<std::size_t>(table.comm().size());
  route.positions = positions;
  route.everywhere = spread::replicates;
  std::vector<int> owner(static_cast<std::size_t>(positions));
  std::vector<std::int64_t> count(ranks + 1, 0);
  for (std::int64_t p = 0; p < positions; ++p) {
    const std::int64_t row = row_at(p);
    owner[static_cast<std::size_t>(p)] = row < 0 ? -1 : table.owner(row);
    if (row >= 0) ++count[static_cast<std::size_t>(owner[static_cast<std::size_t>(p)]) + 1];
  }
  for (std::size_t r = 0; r < ranks; ++r) count[r + 1] += count[r];
  route.begin = count;
  route.place = tensor<std::int64_t, Wire>("positions", count.back());
  route.rows = tensor<std::int64_t, Wire>("rows", count.back());
  auto* place = route.place.data();
  auto* rows = route.rows.data();
  for (std::int64_t p = 0; p < positions; ++p) {
    const int to = owner[static_cast<std::size_t>(p)];
    if (to < 0) continue;
    const std::int64_t at = count[static_cast<std::size_t>(to)]++;
    place[at] = p;
    rows[at] = table.local_row(row_at(p));
  }
}

/// The route of a batch. `named` comes from rows_named_by.
template <class Bounds, class Exec, class Table, class Named>
row_route<wire_space<Exec>> route_rows(const Exec& exec, const Table& table, const Named& named) {
  row_route<wire_space<Exec>> route;
  if constexpr (is_plan<Named>) {
    std::vector<std::int64_t> room;
    const std::int64_t* row_of = host_rows(exec, named, room);
    if (named.storage()->checked) route.report = named.storage()->read_report();
    route.signed_indices = named.storage()->signed_indices;
    group_by_owner(route, table, named.positions(), [&](std::int64_t p) { return row_of[p]; });
  } else {
    using index = std::remove_const_t<typename Named::value_type>;
    const auto rows = static_cast<std::int64_t>(table.rows());
    std::vector<index> room;
    const index* indices = host_values(exec, named, room);
    route.signed_indices = std::is_signed_v<index>;
    if constexpr (Bounds::reports)
      for (std::int64_t p = 0; p < named.rows(); ++p)
        if (Bounds::resolve(indices[p], rows) < 0 && route.report.out_of_range++ == 0) {
          route.report.first_position = static_cast<std::uint64_t>(p);
          route.report.first_index = static_cast<std::uint64_t>(static_cast<std::int64_t>(indices[p]));
        }
    group_by_owner(route, table, named.rows(),
                   [&](std::int64_t p) { return Bounds::resolve(indices[p], rows); });
  }
  return route;
}

}  // namespace ferry::detail
