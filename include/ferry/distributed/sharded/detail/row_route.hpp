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

/// The positions of one batch, grouped by the owner of their row: how many each owner has.
struct route_groups {
  std::int64_t positions = 0;
  bool signed_indices = true;
  index_report report;              ///< bad indices, under bounds::check
  bool unique = false;              ///< each row of an owner is named once, see route_once
  std::vector<std::int64_t> begin;  ///< [ranks + 1] begin of each owner's group
  bool everywhere = false;          ///< every rank owns every row: there is one group, for all of them

  [[nodiscard]] std::int64_t routed() const { return begin.back(); }
  /// The group of an owner, as [first, last).
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> group(int owner) const {
    if (everywhere) return {0, routed()};
    return {begin[static_cast<std::size_t>(owner)], begin[static_cast<std::size_t>(owner) + 1]};
  }
};

/// The positions of one batch in the order of (owner, position). Positions without a row are left out.
template <class Wire>
struct row_route : route_groups {
  tensor<std::int64_t, Wire> place;  ///< [routed] the position
  tensor<std::int64_t, Wire> rows;   ///< [routed] its row in the shard of the owner
  tensor<std::int64_t, Wire> slot;   ///< [positions] if `once`: the place of the position's row, -1 for none
};

/// `row_at(p)` is the row of position p, -1 for none. Two passes: the first counts.
template <class Wire, class Table, class RowAt>
void group_by_owner(row_route<Wire>& route, const Table& table, std::int64_t positions, const RowAt& row_at) {
  const auto ranks = static_cast<std::size_t>(table.comm().size());
  route.positions = positions;
  route.everywhere = Table::sharding_type::replicates;
  std::vector<int> owners(static_cast<std::size_t>(positions));
  std::vector<std::int64_t> next(ranks + 1, 0);
  for (std::int64_t p = 0; p < positions; ++p) {
    const std::int64_t row = row_at(p);
    const int owner = row < 0 ? -1 : table.owner(row);
    owners[static_cast<std::size_t>(p)] = owner;
    if (row >= 0) ++next[static_cast<std::size_t>(owner) + 1];
  }
  for (std::size_t r = 0; r < ranks; ++r) next[r + 1] += next[r];
  route.begin = next;
  route.place = tensor<std::int64_t, Wire>("positions", next.back());
  route.rows = tensor<std::int64_t, Wire>("rows", next.back());
  for (std::int64_t p = 0; p < positions; ++p) {
    const int owner = owners[static_cast<std::size_t>(p)];
    if (owner < 0) continue;
    const std::int64_t item = next[static_cast<std::size_t>(owner)]++;
    route.place.data()[item] = p;
    route.rows.data()[item] = table.local_row(row_at(p));
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
