// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/coded_shard.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/push_values.hpp>
#include <ferry/distributed/sharded/detail/routed_write.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/rows_once.hpp>
#include <ferry/distributed/sharded/detail/values_in_place.hpp>
#include <ferry/distributed/sharded/detail/winning_values.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// A verb that writes. Verb derives from it and has update(rank, rows, values), the verb on a shard.
///
/// Owners pull their rows and values by kernels if all ranks can, and else the ranks send them.
template <class Verb, class Choice, class Exec, class Table, class Named, class Values>
struct sharded_write : routed_write<Choice, Exec, Table, Named, Values> {
  using base = routed_write<Choice, Exec, Table, Named, Values>;
  using base::call, base::exec, base::headers, base::lists, base::owned, base::pulls, base::pushes,
      base::routes, base::table, base::values;
  using base::is_planned, base::may_pull, base::may_push, base::may_read_in_place, base::moves_winners,
      base::sorts, base::sums;
  using typename base::duplicates_policy, typename base::home, typename base::sent;

  bool in_place = false;
  bool by_winners = false;
  std::optional<claimed_shard<Exec>> claims{};
  moved_values<sent, home> moved{};
  pulled_rows<sent> pulled{};
  values_in_place<sent> found_values{};

  using base::routed_write;

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
        const fence_on_exception<Exec> reads(shard_exec);  // memory of other ranks
        if constexpr (may_push)
          if (pushes) return push();
        if constexpr (moves_winners)
          if (by_winners)
            write_winning_values<duplicates_policy>(this->verb, shard_exec, rank, headers,
                                                    make_ref(shard_of(table, rank)))
                .join();
        if constexpr (may_read_in_place)
          if (in_place && !by_winners) self.update_in_place(rank, found_values);
        if (!in_place) update_pulled(self, rank);
        call.agree();  // no rank returns before all have written
        return;
      }
    write_jointly(call.first(), call.last(), [&](int r) {
      tensor<sent, home> copied;
      const auto rows = rows_near(call.is_whole() ? exec : this->instance(call.rank()), this->instance(r),
                                  moved.rows_for(this->current_routes(), r), copied);
      if constexpr (is_planned && !sums)
        self.update(r, this->plan_of(r), rows);
      else
        self.update(r, this->current_routes().rows_for(r), rows);
    });
    call.agree();  // no rank returns before all have written
  }

 private:
  /// Rows and values of the shard of this rank, out of the batches of all.
  void pull() {
    if constexpr (may_pull) {
      const int rank = call.rank();
      const Exec shard_exec = this->instance(rank);
      if constexpr (may_push)
        if (pushes) return claim_rows(shard_exec);
      if constexpr (may_read_in_place) {
        in_place = is_host_exec<Exec> ||
                   values_for(rank, headers, 1).on_devices;  // few threads pull from host memory
        if constexpr (moves_winners) {
          by_winners =
              in_place && winners_beat_a_plan(shard_exec, headers, table.rows_of(rank), this->width());
          if (by_winners) return;
        }
        if (in_place) {
          found_values = find_values<sent>(this->verb, shard_exec, rank, headers, table.rows_of(rank),
                                           this->width(), owned);
          return;
        }
      }
      pulled = pull_rows<sent, sorts>(this->verb, shard_exec, rank, headers, this->width(),
                                      table.rows_of(rank), owned);
    }
  }
  /// Tells all ranks which of their items win rows of the shard of this rank. They may write to it then: what
  /// else this process has enqueued on it has ended, and later work comes after push().
  void claim_rows(const Exec& shard_exec) {
    static const std::string label = "ferry::distributed::claimed";
    const fence_on_exception<Exec> reads(shard_exec);  // lists of other ranks
    claims.emplace(std::type_identity<duplicates_policy>(), this->verb, shard_exec, call.rank(), headers,
                   make_ref(shard_of(table, call.rank())));
    execution_backend<Exec>::fence(shard_exec, label);
    call.agree();
  }
  /// The values of this batch that win, to the shards.
  void push() {
    const fence_on_exception<Exec> writes(exec);  // to memory of other ranks
    push_values(this->verb, exec, table, lists, routes.batch,
                headers.offers[static_cast<std::size_t>(call.rank())].wins, values)
        .join();
    call.agree();  // all ranks have written
    call.close();
    claims->finish();
  }
  void update_pulled(Verb& self, int rank) {
    const auto sources = pulled.values.first(pulled.values.rows());
    if constexpr (sorts) {
      self.update(rank, pulled.plan, sources);
    } else {
      if constexpr (is_planned || duplicates_policy::forbids)
        if (owned != nullptr) return self.update(rank, owned->plan, sources);
      self.update(rank, pulled.rows.first(pulled.rows.rows()), sources);
    }
  }
  /// The values of this batch to the owners of the rows.
  void send() {
    if constexpr (sums) {
      if (lists.memory != nullptr)
        moved.batch = values_by_route<home>(exec, routes.batch, read_only(make_ref(this->local_sums)));
      else
        moved.batch = sums_by_route<home>(exec, this->current_routes().batch, values);
    } else {
      moved.batch = values_by_route<home>(exec, this->current_routes().batch, values);
    }
    if (!call.is_whole())
      moved.move(call, exec, this->instance(call.rank()), this->current_routes(), table.width());
  }
};

}  // namespace ferry::detail
