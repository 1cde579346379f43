// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/detail/collective.hpp>
#include <ferry/distributed/detail/routing.hpp>
#include <ferry/distributed/detail/with_routes.hpp>
#include <ferry/distributed/sharded_table.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The rows of a batch from their owners: the owners read them into buffers, in elements of Wired, and the
/// buffers go back the way that the rows came. `read(rank, named, rows)` is a gather of a shard.
template <class Wired, class Bounds, class Exec, class Table, class Named, class Out, class OutSpace,
          class Read>
ticket gather_by_routes(collective& call, const Exec& exec, const Table& table, const Named& named,
                        const array_ref<Out, OutSpace>& out, const Read& read) {
  using wire = wire_space<Exec>;
  const auto width = static_cast<std::int64_t>(table.width());
  const auto place = [&](const routing<wire>& by, const auto& rows_for, bool here) {
    tensor<Wired, wire> arrived("gathered rows", by.own.routed(), width);
    if (here) {
      for (int r = call.first(); r < call.last(); ++r) {
        const auto [first, last] = by.own.group(r);
        if (last > first) read(r, rows_for(r), arrived.rows_between(first, last));
        if (by.own.everywhere) break;  // all shards have the same rows
      }
    } else {
      tensor<Wired, wire> leaving("rows for others", by.in_begin.back(), width);
      read(call.rank(), rows_for(call.rank()), leaving.first(leaving.rows()));
      move_by_route<true>(call, by, arrived, leaving);
    }
    call.close();
    place_by_route(exec, by.own, arrived, out);
    if (by.own.report.out_of_range == 0) return ticket();
    const std::vector<batch_findings> own{{by.own.report.out_of_range, by.own.report.first_position,
                                           by.own.report.first_index, 0, 0, 0, 0, by.own.positions,
                                           by.own.signed_indices ? 1 : 0}};
    return ticket_of_error(all_findings("gather", whole_ref(table).note(), own, true).bounds_error());
  };
  if constexpr (is_sharded_plan<Named>) {
    const auto& stored = named.storage();
    const bool here = call.is_whole() || stored.routes.own.everywhere;
    if (stored.routes.own.everywhere) {  // the plan sorts the batches of all ranks
      if (!call.is_whole()) call.agree();
      return place(
          stored.routes, [&](int) { return stored.routes.own.rows.first(stored.routes.own.routed()); }, true);
    }
    return place(
        stored.routes, [&](int r) { return stored.plans[static_cast<std::size_t>(r - stored.first)]; }, here);
  } else {
    auto own = route_rows<Bounds>(exec, table, named);
    routing<wire> by;
    if (call.is_whole() || own.everywhere) {
      by.own = std::move(own);
      if (!call.is_whole()) call.agree();
      return place(
          by,
          [&](int r) {
            const auto [first, last] = by.own.group(r);
            return std::as_const(by.own.rows).rows_between(first, last);
          },
          true);
    }
    by = complete_routing(call, table, std::move(own), {});
    return place(
        by, [&](int r) { return by.rows_for(r); }, false);
  }
}

}  // namespace ferry::detail
