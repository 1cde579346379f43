// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/rows_once.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/distributed/sharded/detail/sharded_call.hpp>
#include <ferry/distributed/sharded/detail/values_in_place.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/runtime/detail/array_device.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace ferry::detail {

/// duplicates::reject has been decided by all ranks before a shard is written.
template <class Duplicates>
using shard_duplicates_t = std::conditional_t<Duplicates::forbids, duplicates::assume_unique, Duplicates>;

/// Adds the rows of the shards of this thread that are named more than once.
template <class Table, class Wire>
void count_duplicates(const collective& call, const Table& table, const routing<Wire>& routes,
                      batch_findings& findings) {
  for (int r = call.first(); r < call.last(); ++r) {
    if (routes.batch.everywhere && r != 0) continue;  // all ranks see the same rows: rank 0 counts them
    const auto named = routes.rows_for(r);
    std::vector<std::int64_t> rows(named.data(), named.data() + named.rows());
    std::sort(rows.begin(), rows.end());
    for (auto row = rows.begin(); row != rows.end();) {
      const auto end = std::upper_bound(row, rows.end(), *row);
      if (end - row > 1) {
        ++findings.duplicates;
        findings.first_row =
            std::min(findings.first_row, static_cast<std::uint64_t>(table.global_row(r, *row)));
      }
      row = end;
    }
  }
}

/// The policies and facts of a verb that writes. ReadsInPlace: it takes values_in_place; Scans: it has looked
/// at its values.
template <class Summing, bool ReadsInPlace = false, bool Scans = false>
struct write_choice : Summing {
  using bounds_policy = typename Summing::chosen::template get<bounds_category, bounds::check>;
  static constexpr bool reads_in_place = ReadsInPlace;
  static constexpr bool scans = Scans;
};

/// A verb that writes. Verb derives from it and has update(rank, rows, values), the verb on a shard. Nothing
/// is written anywhere if a rank has a bad index, or a row that duplicates::reject forbids.
///
/// Owners pull their rows and values by kernels if all ranks can, and else the ranks send them.
template <class Verb, class Choice, class Exec, class Table, class Named, class Values>
struct sharded_write : sharded_call<Exec, Table, Named> {
  using base = sharded_call<Exec, Table, Named>;
  using base::call, base::exec, base::findings, base::named, base::routes, base::table;
  using duplicates_policy = typename Choice::duplicates;
  using bounds_policy = typename Choice::bounds_policy;
  using value = std::remove_const_t<typename Values::value_type>;
  using space = typename Values::memory_space;
  using home = payload_space<Exec, typename Table::memory_space, space>;
  static constexpr bool is_planned = base::is_planned;
  /// True if a rank sums the values of a row before it sends them.
  static constexpr bool sums = Choice::reduce::sums_locally;
  using sent = std::conditional_t<sums, accumulation_t<value>, value>;
  /// duplicates::reject looks at the rows by host code, and the sums of a rank are in the order of a host's
  /// route. Rows that come from host memory and go there pass through host memory alone.
  static constexpr bool may_pull = routes_by_kernels<Exec> && finds_owners_in_kernels<Table> && !is_planned &&
                                   !sums && !duplicates_policy::forbids &&
                                   (is_host_exec<Exec> || !home::is_host_accessible);
  /// True if the verb on a shard sorts its rows whatever they are, so that they can be sorted while the
  /// values come; see update_on.
  static constexpr bool sorts =
      duplicates_policy::combines && duplicates_policy::needs_plan && !in_any_order<duplicates_policy>;
  static constexpr bool may_read_in_place =
      sorts && Choice::reads_in_place && std::is_same_v<typename Table::memory_space, device_space>;

  const Values& values;
  batch_findings scanned{};  ///< of the values of this rank
  routed_lists lists{};
  batch_headers headers{};
  bool pulls = false;
  bool in_place = false;
  moved_values<sent, home> moved{};
  pulled_rows<value> pulled{};
  values_in_place<value> found_values{};

  sharded_write(const char* name, const Exec& instance, Table& rows, const Named& indices,
                const Values& sources, const call_note& note)
      : base(name, instance, rows, indices, sums, note), values(sources) {}

  void check() {
    require_sharded_batch<Exec, typename Choice::chosen>(this->verb, call, table, named, values);
    require_array_device(this->verb, exec, values);
  }
  void route() {
    if constexpr (!is_planned) {
      if constexpr (may_pull)
        if (!call.is_whole() && call.passes_device_memory() && call.ranks() <= kernels::most_shards &&
            kernels_read(exec, named)) {
          routes.batch = route_by_kernels<bounds_policy>(this->verb, exec, table, named, lists, values);
          call.keep(lists.memory);
        }
      if (lists.memory == nullptr) routes.batch = route_batch<bounds_policy>(this->verb, exec, table, named);
      if constexpr (sums) routes.batch = route_once(routes.batch);
    }
  }
  void agree() {
    if constexpr (is_planned)
      findings = this->current_routes().findings;
    else
      agree_on_routes();
    if constexpr ((is_planned && Choice::scans) || duplicates_policy::forbids) {
      batch_findings batch = this->own_findings();
      batch.take_values(scanned);
      if constexpr (duplicates_policy::forbids) count_duplicates(call, table, this->current_routes(), batch);
      this->exchange_findings(batch);
    }
  }
  [[nodiscard]] bool refuse() { return this->refuse_batches(); }
  void move() {
    if (pulls)
      pull();
    else
      send();
  }
  void apply() {
    Verb& self = static_cast<Verb&>(*this);
    if constexpr (may_pull)
      if (pulls) {
        const int rank = call.rank();
        const Exec shard_exec = this->instance(rank);
        const waited_when_thrown<Exec> reads(shard_exec);  // memory of other ranks
        if constexpr (may_read_in_place)
          if (in_place) self.update_in_place(rank, found_values);
        if constexpr (sorts) {
          if (!in_place) self.update(rank, pulled.plan, pulled.values.first(pulled.values.rows()));
        } else {
          self.update(rank, pulled.rows.first(pulled.rows.rows()), pulled.values.first(pulled.values.rows()));
        }
        call.agree();  // no rank returns before all have written
        return;
      }
    for (int r = call.first(); r < call.last(); ++r) {
      tensor<sent, home> copied;
      const auto rows = rows_near(call.is_whole() ? exec : this->instance(call.rank()), this->instance(r),
                                  moved.rows_for(this->current_routes(), r), copied);
      if constexpr (is_planned && !sums)
        self.update(r, this->plan_of(r), rows);
      else
        self.update(r, this->current_routes().rows_for(r), rows);
    }
    call.agree();  // no rank returns before all have written
  }

 private:
  /// The headers of all batches. The routes are complete afterwards, unless owners pull, or a rank has a bad
  /// index, for which nothing is written.
  void agree_on_routes() {
    batch_offer offer;
    if constexpr (may_pull)
      if (lists.memory != nullptr) offer = offer_batch(exec, this->instance(call.rank()), lists, values);
    headers = exchange_headers(call, routes.batch, scanned, offer);
    take_headers(routes, call.is_whole(), headers);
    findings = headers.findings;
    if (call.is_whole()) return;
    if constexpr (may_pull) {
      pulls = can_pull<Exec>(headers.offers);
      if (pulls) {
        call.begin_reads();
        return;
      }
    }
    for (const batch_findings& rank : findings)
      if (rank.out_of_range != 0) return;
    if constexpr (may_pull)
      if (lists.memory != nullptr) bring_to_host(exec, lists, routes.batch);
    exchange_rows(call, table.label(), routes);
  }
  /// Rows and values of the shard of this rank, out of the batches of all.
  void pull() {
    if constexpr (may_pull) {
      const int rank = call.rank();
      const Exec shard_exec = this->instance(rank);
      if constexpr (may_read_in_place) {
        in_place = values_for(rank, headers, 1).on_devices;  // few threads pull from host memory first
        if (in_place) {
          found_values =
              find_values<value>(this->verb, shard_exec, rank, headers, table.rows_of(rank), this->width());
          return;
        }
      }
      pulled =
          pull_rows<value, sorts>(this->verb, shard_exec, rank, headers, this->width(), table.rows_of(rank));
    }
  }
  /// The values of this batch to the owners of the rows.
  void send() {
    if constexpr (sums)
      moved.batch = sums_by_route<home>(exec, this->current_routes().batch, values);
    else
      moved.batch = values_by_route<home>(exec, this->current_routes().batch, values);
    if (!call.is_whole())
      moved.move(call, exec, this->instance(call.rank()), this->current_routes(), table.width());
  }
};

/// The policies that a verb on a shard gets; bounds::unchecked is that of the plans, too.
template <class Chosen, class Duplicates>
using shard_policies = policies<shard_path_t<Chosen>, bounds::unchecked, shard_duplicates_t<Duplicates>>;

}  // namespace ferry::detail
