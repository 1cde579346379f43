// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/host_values.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>
#include <vector>

namespace ferry::detail {

/// A verb on a sharded table: its arguments, the routes of the batches, and the parts of phases that verbs
/// share. collective::run runs the phases. `Table` may be const, `Named` is a sharded_plan or what
/// rows_named_by returns.
template <class Exec, class Table, class Named>
struct sharded_call {
  using wire = wire_space<Exec>;
  static constexpr bool is_planned = is_sharded_plan<Named>;

  const char* verb;
  const Exec& exec;
  Table& table;
  const Named& named;
  bool unique;  ///< each row of an owner is named once
  collective call;
  routing<wire> routes{};                  ///< without a plan, or if `routes_anew`
  bool routes_anew = false;                ///< true if the verb makes routes although it has a plan
  std::vector<batch_findings> findings{};  ///< of all ranks
  ticket result{};

  sharded_call(const char* name, const Exec& instance, Table& rows, const Named& indices, bool names_once,
               const call_note& note)
      : verb(name),
        exec(instance),
        table(rows),
        named(indices),
        unique(names_once),
        call(rows.comm(), note) {}
  sharded_call(const sharded_call&) = delete;
  sharded_call& operator=(const sharded_call&) = delete;

  /// The routes of this call, or those of its plan.
  [[nodiscard]] const routing<wire>& current_routes() const {
    if constexpr (is_planned)
      if (!routes_anew)
        return unique ? named.storage().unique_routes(exec) : named.storage().routes_on_host(exec);
    return routes;
  }
  [[nodiscard]] Exec instance(int rank) const { return shard_instance(table.comm(), rank, exec); }
  [[nodiscard]] std::int64_t width() const { return static_cast<std::int64_t>(table.width()); }
  /// The plan of a shard.
  [[nodiscard]] const row_plan& plan_of(int rank) const {
    const auto& plan = named.storage();
    return plan.plans[static_cast<std::size_t>(rank - plan.first)];
  }
  [[nodiscard]] batch_findings own_findings() const {
    return findings[call.is_whole() ? 0 : static_cast<std::size_t>(call.rank())];
  }
  /// A phase, which ends reads: the ranks tell each other their findings once more.
  void exchange_findings(const batch_findings& batch) {
    if (call.is_whole())
      findings.assign(1, batch);
    else
      findings = call.agree_on(std::span<const batch_findings>(&batch, 1));
  }
  [[nodiscard]] all_findings joint_findings() const {
    if constexpr (requires { table.part_notes(); })
      return {verb, whole_ref(table).note(), findings, call.is_whole(), table.part_notes()};
    else
      return {verb, whole_ref(table).note(), findings, call.is_whole()};
  }
  /// Refuses batches with bad offsets or indices, or with rows that duplicates::reject forbids.
  [[nodiscard]] bool refuse_batches() {
    const all_findings all_batches = joint_findings();
    if (!all_batches.has_error()) return false;
    call.close();  // the ranks agree: memory that the message lacks is this rank's own error
    result = ticket_of_error(all_batches.error());
    return true;
  }
  /// Refuses gradients by the policy; what it leaves out counts as skipped steps.
  template <class Nonfinite, class State>
  [[nodiscard]] bool refuse_gradients([[maybe_unused]] State& state) {
    if constexpr (!Nonfinite::looks) {
      return false;
    } else {
      const all_findings all_batches = joint_findings();
      if (all_batches.nonfinite() == 0) return false;
      call.close();
      if constexpr (Nonfinite::reports)
        result = ticket_of_error(all_batches.nonfinite_error(width()));
      else
        for (int r = call.first(); r < call.last(); ++r) count_skipped(state, r);
      return true;
    }
  }

  /// Fetches the rows of the batch from their owners, `columns` elements of Wired each and in the order of
  /// the route, into a buffer on the device of `exec`. `reader(*this, rank, rows, out)` is a gather of a
  /// shard. The buffers of owners go back along the routes.
  template <class Payload, class Wired, class Reader>
  [[nodiscard]] tensor<Wired, Payload> fetch(const Reader& reader, std::int64_t columns) {
    const row_route<wire>& route = current_routes().batch;
    auto arrived = payload<Wired, Payload>(exec, "gathered rows", route.routed(), columns);
    if (!call.is_whole() && !route.everywhere) {
      const Exec shard_exec = instance(call.rank());
      auto leaving =
          payload<Wired, Payload>(shard_exec, "rows for others", current_routes().in_begin.back(), columns);
      read_shard(reader, call.rank(), leaving.first(leaving.rows()));
      const route_parts parts = parts_of<true>(current_routes(), arrived, leaving);
      exchange_payload<Payload>(call, shard_exec, exec, parts.outgoing, parts.incoming);
      return arrived;
    }
    for (int r = call.first(); r < call.last(); ++r) {
      const auto [first, last] = route.group(r);
      const Exec shard_exec = instance(r);
      auto rows = arrived.rows_between(first, last);
      if (last > first && share_home<Payload>(exec, shard_exec)) {
        read_shard(reader, r, rows);
      } else if (last > first) {
        auto leaving = payload<Wired, Payload>(shard_exec, "rows for others", last - first, columns);
        read_shard(reader, r, leaving.first(leaving.rows()));
        copy_home(exec, rows.data(), shard_exec, leaving.data(), leaving.size() * sizeof(Wired));
      }
      if (route.everywhere) break;  // all shards have the same rows
    }
    call.agree();  // after the reads, so that a rank that fails in them tells the others
    return arrived;
  }

 private:
  /// Counts a skipped step of the state of a shard, or of the shards of several tables.
  template <class State>
  static void count_skipped(State& state, int rank) {
    if constexpr (requires { state.shard(rank); })
      ++state.shard(rank).clock()->skipped;
    else
      for (auto& part : state) count_skipped(part, rank);
  }
  template <class Reader, class Rows>
  void read_shard(const Reader& reader, int rank, const Rows& out) const {
    const row_route<wire>& route = current_routes().batch;
    if constexpr (is_planned)
      if (!unique && !route.everywhere) {  // the plan of a replicated table sorts the batches of all ranks
        reader(*this, rank, plan_of(rank), out);
        return;
      }
    if (!call.is_whole() && !route.everywhere) {
      reader(*this, rank, current_routes().rows_for(rank), out);
      return;
    }
    const auto [first, last] = route.group(rank);
    reader(*this, rank, std::as_const(route.rows).rows_between(first, last), out);
  }
};

}  // namespace ferry::detail
