// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/rows_once.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/distributed/sharded/detail/values_in_place.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
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

/// Whether the owners of rows may pull what is for them: duplicates::reject looks at the rows by host code,
/// and the sums of a rank are in the order of a host's route.
template <class Exec, class Table, class Named, class Reduce, class Duplicates>
inline constexpr bool may_pull = routes_by_kernels<Exec>&& finds_owners_in_kernels<Table> &&
                                 !is_sharded_plan<Named> && !Reduce::sums_locally && !Duplicates::forbids;

/// Routes the batch and tells the others of it: by kernels, where all ranks can; `pulls` says so. Otherwise
/// the routes are complete, unless a rank has a bad index, for which nothing is written.
template <class Reduce, class Duplicates, class Bounds, class Exec, class Table, class Named, class Value,
          class Space>
routing<wire_space<Exec>> meet_about_values(collective& call, const char* verb, const Exec& exec,
                                            const Table& table, const Named& named,
                                            const array_ref<Value, Space>& values,
                                            const batch_findings& scanned, batch_meeting<batch_offer>& met,
                                            bool& pulls) {
  // Rows that come from host memory and go there pass through host memory alone.
  constexpr bool tries =
      may_pull<Exec, Table, Named, Reduce, Duplicates> &&
      (is_host_exec<Exec> || !payload_space<Exec, typename Table::memory_space, Space>::is_host_accessible);
  row_route<wire_space<Exec>> own;
  [[maybe_unused]] routed_lists lists;
  batch_offer offer;
  if constexpr (tries)
    if (!call.is_whole() && call.passes_device_memory() && call.ranks() <= kernels::most_shards &&
        kernels_read(exec, named)) {
      own = route_by_kernels<Bounds>(verb, exec, table, named, values, lists);
      call.keep(lists.memory);
      offer = offer_batch(exec, shard_instance(table.comm(), call.rank(), exec), lists, values);
    }
  if (lists.memory == nullptr) own = route_rows<Bounds>(exec, table, named);
  if constexpr (Reduce::sums_locally) own = route_once(own);
  auto made = meet_about_batches(call, std::move(own), scanned, offer, met);
  if (call.is_whole()) return made;
  if constexpr (tries) {
    pulls = can_pull<Exec>(met.offers);
    if (pulls) {
      call.begin_reads();
      return made;
    }
  }
  for (const batch_findings& each : made.findings)
    if (each.out_of_range != 0) return made;
  if constexpr (tries)
    if (lists.memory != nullptr) bring_to_host(exec, lists, made.own);
  exchange_rows(call, table, made);
  return made;
}

/// Whether the verb on a shard sorts its rows whatever they are, so that they can be sorted while the values
/// come; see update_on.
template <class Duplicates>
inline constexpr bool sorts_on_shards =
    Duplicates::combines&& Duplicates::needs_plan && !in_any_order<Duplicates>;

/// The verb on the shard of this rank, with rows and values that it pulls out of the batches of all.
template <class Value, class Duplicates, class Exec, class Table, class Apply>
void write_pulled(collective& call, const char* verb, const Exec& exec, const Table& table,
                  const batch_meeting<batch_offer>& met, const Apply& apply) {
  const int rank = call.rank();
  const Exec there = shard_instance(table.comm(), rank, exec);
  const auto width = static_cast<std::int64_t>(table.width());
  const auto use = [&](const auto& named, const auto& values) {
    try {
      apply(rank, named, values);
    } catch (...) {
      const waited_for<Exec> reading(there);  // memory of other ranks
      throw;
    }
  };
  if constexpr (sorts_on_shards<Duplicates> && reads_in_place<Apply> &&
                std::is_same_v<typename Table::memory_space, device_space>)
    if (lie_on_devices(rank, met)) {
      const auto found = find_values<Value>(verb, there, rank, met, table.rows_of(rank), width);
      use(found.plan, found);
      call.agree();
      call.close();
      return;
    }
  if constexpr (sorts_on_shards<Duplicates>) {
    row_plan plan;
    const auto sort = [&](const auto& rows) {
      plan = make_plan(there, rows, table.rows_of(rank), bounds::unchecked{});
    };
    const auto pulled = pull_rows<Value>(verb, there, rank, met, width, sort);
    use(plan, pulled.values.first(pulled.values.rows()));
  } else {
    const auto pulled = pull_rows<Value>(verb, there, rank, met, width);
    use(pulled.rows.first(pulled.rows.rows()), pulled.values.first(pulled.values.rows()));
  }
  call.agree();
  call.close();
}

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
  batch_meeting<batch_offer> met;
  bool pulls = false;
  if constexpr (!planned) {
    made = meet_about_values<Reduce, Duplicates, Bounds>(call, verb, exec, table, named, values, scanned, met,
                                                         pulls);
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

  if constexpr (may_pull<Exec, Table, Named, Reduce, Duplicates>)
    if (pulls) {
      write_pulled<value, Duplicates>(call, verb, exec, table, met, apply);
      return {};
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
