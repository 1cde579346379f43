// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/row_route.hpp>
#include <ferry/error.hpp>
#include <ferry/tensor/slice.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The routes of the batches of all ranks, as far as this thread needs them: its own batch, and the rows that
/// all batches name in the shards that it acts for, in the order (rank, position).
template <class Wire>
struct routing {
  row_route<Wire> batch;
  std::vector<batch_findings> findings;  ///< by rank; one if a thread acts for the group
  bool is_whole = true;
  tensor<std::int64_t, Wire> rows_in;  ///< unless is_whole: the rows of the shard of this rank
  std::vector<std::int64_t> in_begin;  ///< [ranks + 1] begin of each rank's rows in rows_in

  /// The rows of the shard of `owner`, one of the ranks that this thread acts for.
  [[nodiscard]] tensor_slice<const std::int64_t, Wire> rows_for(int owner) const {
    if (!is_whole) return rows_in.first(rows_in.rows());
    const auto [first, last] = batch.group(owner);
    return batch.rows.rows_between(first, last);
  }
};

/// The parts of an exchange, by rank.
struct route_parts {
  std::vector<outgoing_part> outgoing;
  std::vector<incoming_part> incoming;
};
/// The parts of an exchange between the ranks of a batch, whose rows lie in the order of the route, and the
/// owners, whose rows lie in that of rows_in. With `back` the owners send.
[[nodiscard]] route_parts parts_of(bool back, const route_groups& batch_route,
                                   const std::vector<std::int64_t>& in_begin, std::byte* batch,
                                   std::byte* shard, std::size_t row_bytes);
/// As above, of two buffers.
template <bool Back, class Wire, class T, class Space>
route_parts parts_of(const routing<Wire>& routes, tensor<T, Space>& batch, tensor<T, Space>& shard) {
  return parts_of(Back, routes.batch, routes.in_begin, reinterpret_cast<std::byte*>(batch.data()),
                  reinterpret_cast<std::byte*>(shard.data()), batch.width() * sizeof(T));
}

/// Sends the rows of the batches to their owners: one phase.
template <class Wire>
void exchange_rows(collective& call, const std::string& label, routing<Wire>& routes) {
  routes.rows_in = tensor<std::int64_t, Wire>(joined("rows of '", label, "'"), routes.in_begin.back());
  const route_parts parts = parts_of<false>(routes, routes.batch.rows, routes.rows_in);
  call.exchange(parts.outgoing, parts.incoming);
}

/// Takes the headers of all batches into the routes.
template <class Wire>
void take_headers(routing<Wire>& routes, bool is_whole, batch_headers& headers) {
  routes.is_whole = is_whole;
  routes.findings = headers.findings;
  routes.in_begin = headers.in_begin;
}

/// Routes the batches of all ranks: two phases.
template <class Wire>
routing<Wire> complete_routing(collective& call, const std::string& label, row_route<Wire>&& batch_route,
                               const batch_findings& scanned = {}) {
  routing<Wire> routes;
  routes.batch = std::move(batch_route);
  auto headers = exchange_headers(call, routes.batch, scanned, {});
  take_headers(routes, call.is_whole(), headers);
  if (!call.is_whole()) exchange_rows(call, label, routes);
  return routes;
}

/// Rows that travel from the ranks of the batches to the owners of their table rows.
template <class T, class Payload>
struct moved_values {
  tensor<T, Payload> batch;  ///< on the device of the caller's instance
  tensor<T, Payload> shard;  ///< on the device of the shard

  /// `batch` is in the order of the route. `extents` follow the number of rows.
  template <class Exec, class Wire, class... Extents>
  void move(collective& call, const Exec& exec, const Exec& shard_exec, const routing<Wire>& routes,
            Extents... extents) {
    if (call.is_whole()) return;
    shard = payload<T, Payload>(shard_exec, "values of others", routes.in_begin.back(), extents...);
    const route_parts parts = parts_of<false>(routes, batch, shard);
    exchange_payload<Payload>(call, exec, shard_exec, parts.outgoing, parts.incoming);
  }
  template <class Wire>
  [[nodiscard]] tensor_slice<const T, Payload> rows_for(const routing<Wire>& routes, int owner) const {
    if (!routes.is_whole) return shard.first(shard.rows());
    const auto [first, last] = routes.batch.group(owner);
    return batch.rows_between(first, last);
  }
};

}  // namespace ferry::detail
