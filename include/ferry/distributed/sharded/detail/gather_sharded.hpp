// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/rows_once.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The rows of a route from their owners, which read them into buffers in Payload, in elements of Wired; the
/// buffers go back the way that the rows came, to one on the device of `exec`. `read(rank, rows_for(rank),
/// rows)` is a gather of a shard. With `here` the shards of this thread have all rows.
template <class Payload, class Wired, class Exec, class Wire, class Table, class RowsFor, class Read>
tensor<Wired, Payload> fetch_rows(collective& call, const Exec& exec, const Table& table,
                                  const routing<Wire>& by, bool here, const RowsFor& rows_for,
                                  const Read& read) {
  const auto width = static_cast<std::int64_t>(table.width());
  auto arrived = payload<Wired, Payload>(exec, "gathered rows", by.own.routed(), width);
  const auto leaving_of = [&](const Exec& there, std::int64_t rows) {
    return payload<Wired, Payload>(there, "rows for others", rows, width);
  };
  if (!here) {
    const Exec there = shard_instance(table.comm(), call.rank(), exec);
    auto leaving = leaving_of(there, by.in_begin.back());
    read(call.rank(), rows_for(call.rank()), leaving.first(leaving.rows()));
    move_payload<true>(call, exec, there, by, arrived, leaving);
    return arrived;
  }
  for (int r = call.first(); r < call.last(); ++r) {
    const auto [first, last] = by.own.group(r);
    const Exec there = shard_instance(table.comm(), r, exec);
    auto into = arrived.rows_between(first, last);
    if (last > first && share_home<Payload>(exec, there)) {
      read(r, rows_for(r), into);
    } else if (last > first) {
      auto leaving = leaving_of(there, last - first);
      read(r, rows_for(r), leaving.first(leaving.rows()));
      copy_home(exec, into.data(), there, leaving.data(), leaving.size() * sizeof(Wired));
    }
    if (by.own.everywhere) break;  // all shards have the same rows
  }
  if (!call.is_whole()) call.agree();  // after the reads, so that a rank that fails in them tells the others
  return arrived;
}

/// The same by complete routes, without a plan.
template <class Payload, class Wired, class Exec, class Wire, class Table, class Read>
tensor<Wired, Payload> fetch_rows(collective& call, const Exec& exec, const Table& table,
                                  const routing<Wire>& by, const Read& read) {
  const bool here = call.is_whole() || by.own.everywhere;
  const auto rows_for = [&](int r) {
    if (!here) return by.rows_for(r);
    const auto [first, last] = by.own.group(r);
    return std::as_const(by.own.rows).rows_between(first, last);
  };
  return fetch_rows<Payload, Wired>(call, exec, table, by, here, rows_for, read);
}

/// The rows of a batch. With `once` each different row of an owner comes once. Returns what `use(route,
/// rows)` does, which comes after the last phase.
template <class Payload, class Wired, class Bounds, class Exec, class Table, class Named, class Read,
          class Use>
auto fetch_by_routes(collective& call, const Exec& exec, const Table& table, const Named& named, bool once,
                     const Read& read, const Use& use) {
  using wire = wire_space<Exec>;
  const auto fetch = [&](const routing<wire>& by) {
    auto arrived = fetch_rows<Payload, Wired>(call, exec, table, by, read);
    call.close();
    return use(by.own, arrived);
  };
  if constexpr (is_sharded_plan<Named>) {
    const auto& stored = named.storage();
    if (once) return fetch(stored.once());
    if (stored.routes.own.everywhere) return fetch(stored.routes);  // the plan sorts all ranks' batches
    const auto planned = [&](int r) { return stored.plans[static_cast<std::size_t>(r - stored.first)]; };
    auto arrived =
        fetch_rows<Payload, Wired>(call, exec, table, stored.routes, call.is_whole(), planned, read);
    call.close();
    return use(stored.routes.own, arrived);
  } else {
    routing<wire> by;
    by.own = route_rows<Bounds>(exec, table, named);
    if (once) by.own = route_once(by.own);
    if (!call.is_whole() && !by.own.everywhere) by = complete_routing(call, table, std::move(by.own), {});
    return fetch(by);
  }
}

/// The error of bad indices in this thread's batch.
template <class Wire, class Table>
ticket ticket_of_report(const char* verb, const row_route<Wire>& of, const Table& table) {
  batch_findings own;
  own.out_of_range = of.report.out_of_range;
  own.first_position = of.report.first_position;
  own.first_index = of.report.first_index;
  own.positions = of.positions;
  own.signed_indices = of.signed_indices ? 1 : 0;
  return ticket_of_error(all_findings(verb, whole_ref(table).note(), {own}, true).bounds_error());
}

/// A gather into `out`; see fetch_by_routes.
template <class Wired, class Bounds, class Exec, class Table, class Named, class Out, class OutSpace,
          class Read>
ticket gather_by_routes(collective& call, const Exec& exec, const Table& table, const Named& named, bool once,
                        const array_ref<Out, OutSpace>& out, const Read& read) {
  using home = payload_space<Exec, typename Table::memory_space, OutSpace>;
  return fetch_by_routes<home, Wired, Bounds>(call, exec, table, named, once, read,
                                              [&](const auto& route, const auto& arrived) {
                                                place_by_route(exec, route, arrived, out);
                                                if (route.report.out_of_range == 0) return ticket();
                                                return ticket_of_report("gather", route, table);
                                              });
}

}  // namespace ferry::detail
