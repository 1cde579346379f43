// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/detail/batch_findings.hpp>
#include <ferry/distributed/detail/collective.hpp>
#include <ferry/distributed/detail/payload.hpp>
#include <ferry/distributed/detail/routing.hpp>
#include <ferry/distributed/detail/rows_once.hpp>
#include <ferry/distributed/detail/shard_instance.hpp>
#include <ferry/distributed/detail/with_routes.hpp>
#include <ferry/distributed/sharded_table.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/reduce.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// duplicates::reject has been decided by all ranks before a shard is written.
template <class Duplicates>
using shard_duplicates_t = std::conditional_t<Duplicates::forbids, duplicates::assume_unique, Duplicates>;

/// Rows of the shards of this thread that are named more than once.
template <class Table, class Wire>
void count_duplicates(const collective& call, const Table& table, const routing<Wire>& by,
                      batch_findings& into) {
  const auto everywhere = by.own.everywhere;
  for (int r = call.first(); r < call.last(); ++r) {
    if (everywhere && r != 0) continue;  // all ranks see the same rows: rank 0 counts them
    const auto named = by.rows_for(r);
    std::vector<std::int64_t> rows(named.data(), named.data() + named.rows());
    std::sort(rows.begin(), rows.end());
    for (auto at = rows.begin(); at != rows.end();) {
      const auto end = std::upper_bound(at, rows.end(), *at);
      if (end - at > 1) {
        ++into.duplicates;
        into.first_row = std::min(into.first_row, static_cast<std::uint64_t>(table.global_row(r, *at)));
      }
      at = end;
    }
  }
}

/// Of the values of all ranks' batches, those for rows of this thread's shards.
template <class Payload, class T>
struct routed_values {
  tensor<T, Payload> own;  ///< on the device of the caller's instance
  tensor<T, Payload> in;   ///< on that of the shard

  template <class By>
  [[nodiscard]] tensor_slice<const T, Payload> rows_for(const By& by, int owner) const {
    if (!by.is_whole) return in.first(in.rows());
    const auto [first, last] = by.own.group(owner);
    return own.rows_between(first, last);
  }
};

/// accept of a verb that does not look at its values.
struct any_values {
  bool operator()(const all_findings&, ticket&) const { return false; }
};

/// A verb that writes. `scanned` is what this rank found in its values. Nothing is written anywhere if a rank
/// has a bad index, or a row that duplicates::reject forbids. Then `accept(findings)` may refuse, by
/// returning a ticket and true. `apply(rank, named, values)` is the verb on a shard.
template <class Reduce, class Duplicates, class Bounds, class Exec, class Table, class Named, class Value,
          class Space, class Accept, class Apply>
ticket write_by_routes(collective& call, const char* verb, const Exec& exec, const Table& table,
                       const Named& named, const array_ref<Value, Space>& values,
                       const batch_findings& scanned, const Accept& accept, const Apply& apply) {
  using wire = wire_space<Exec>;
  using value = std::remove_const_t<Value>;
  constexpr bool planned = is_sharded_plan<Named>;
  constexpr bool scans = !std::is_same_v<Accept, any_values>;
  constexpr bool sums = Reduce::sums_locally;
  routing<wire> made;
  if constexpr (!planned) {
    auto own = route_rows<Bounds>(exec, table, named);
    if constexpr (sums) own = route_once(own);
    made = complete_routing(call, table, std::move(own), scanned);
  }
  const routing<wire>& by = [&]() -> const routing<wire>& {
    if constexpr (planned && sums)
      return named.storage().once();
    else if constexpr (planned)
      return named.storage().routes;
    else
      return made;
  }();
  std::vector<batch_findings> findings = by.findings;
  if constexpr ((planned && scans) || Duplicates::forbids) {
    batch_findings mine = findings[by.is_whole ? 0 : static_cast<std::size_t>(call.rank())];
    mine.nonfinite = scanned.nonfinite;
    mine.first_value = scanned.first_value;
    if constexpr (Duplicates::forbids) count_duplicates(call, table, by, mine);
    if (call.is_whole())
      findings.assign(1, mine);
    else
      findings = call.all_gather(std::span<const batch_findings>(&mine, 1));
  }
  const all_findings found(verb, whole_ref(table).note(), findings, call.is_whole());
  if (found.out_of_range() != 0 || found.duplicates() != 0) {
    call.close();
    return ticket_of_error(found.out_of_range() != 0 ? found.bounds_error() : found.duplicates_error());
  }
  ticket refused;
  if (accept(found, refused)) {
    call.close();
    return refused;
  }

  using sent = std::conditional_t<sums, accumulation_t<value>, value>;
  using home = payload_space<Exec, typename Table::memory_space, Space>;
  routed_values<home, sent> moved;
  if constexpr (sums)
    moved.own = sums_by_route<home>(exec, by.own, values);
  else
    moved.own = values_by_route<home>(exec, by.own, values);
  if (!call.is_whole()) {
    const Exec there = shard_instance(table.comm(), call.rank(), exec);
    moved.in = payload<sent, home>(there, "values of others", by.in_begin.back(), table.width());
    move_payload<false>(call, exec, there, by, moved.own, moved.in);
  }
  for (int r = call.first(); r < call.last(); ++r) {
    const Exec there = shard_instance(table.comm(), r, exec);
    with_rows_near(call.is_whole() ? exec : there, there, moved.rows_for(by, r), [&](const auto& rows) {
      if constexpr (planned && !sums)
        apply(r, named.storage().plans[static_cast<std::size_t>(r - named.storage().first)], rows);
      else
        apply(r, by.rows_for(r), rows);
    });
  }
  if (!call.is_whole()) call.agree();
  call.close();
  return {};
}

/// The policies that a verb on a shard gets; bounds::unchecked is that of the plans, too.
template <class Chosen, class Duplicates>
using shard_policies = policies<shard_path_t<Chosen>, bounds::unchecked, shard_duplicates_t<Duplicates>>;

}  // namespace ferry::detail
