// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/received_rows.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

/// The batches of a verb that writes, from the buckets of each rank's to the rows and values that each owner
/// has of all, in the order (rank, position).
namespace ferry::detail {

/// The batch of this rank in a call of a verb on a sharded table, and what the ranks tell each other of
/// theirs. `Table` may be const.
template <class Exec, class Table>
class sharded_batch {
 public:
  sharded_batch(collective& call, const char* verb, const Exec& exec, Table& table)
      : call_(call), verb_(verb), exec_(exec), table_(table) {}
  sharded_batch(const sharded_batch&) = delete;
  sharded_batch& operator=(const sharded_batch&) = delete;

  [[nodiscard]] Exec instance(int rank) const { return shard_instance(table_.comm(), rank, exec_); }
  [[nodiscard]] const buckets& items() const { return *items_; }
  [[nodiscard]] bool is_in_place() const { return in_place_; }
  /// True if owners have a plan of their rows.
  [[nodiscard]] bool is_planned() const { return plan_ != nullptr; }

  /// Takes the buckets of a plan, or those that were made for this call.
  /// @{
  void use(const sharded_plan_storage<Exec>& plan) {
    plan_ = &plan;
    items_ = &plan.items;
  }
  void use(buckets&& items) {
    listed_ = std::move(items);
    items_ = &listed_;
    call_.keep(listed_.memory);
  }
  /// @}

  /// The offer of the values for owners that read them in place; not made unless `ReadsInPlace`.
  template <bool ReadsInPlace, class Values>
  [[nodiscard]] batch_offer offer([[maybe_unused]] const Values& values) const {
    if constexpr (ReadsInPlace)
      return show_batch(call_, exec_, instance(call_.first()), *items_, values);
    else
      return {};
  }

  /// The ranks meet: their findings, the items for each owner, and whether owners read in place. With a plan
  /// only if `scans`, or if its owners read lists in place. `offer` is made if the verb reads in place.
  void meet(const batch_findings& scanned, const batch_offer& offer, bool scans = true) {
    if (plan_ == nullptr) {
      headers_ = exchange_headers(call_, *items_, scanned, offer);
    } else {
      batch_findings batch = plan_->findings_of(call_);
      batch.take_values(scanned);
      batch.bad_bags = scanned.bad_bags;
      batch.offsets = scanned.offsets;
      headers_ = plan_->headers;
      if (scans || plan_->in_place || call_.is_whole())
        headers_ = exchange_offers(call_, std::move(headers_), batch, offer);
      else
        return;
    }
    in_place_ = agree_to_pull<Exec>(call_, headers_);
  }

  /// The findings of all ranks, once more: a phase, which ends reads.
  void meet_again(const batch_findings& batch) {
    if (call_.is_whole())
      headers_.findings.assign(1, batch);
    else
      headers_.findings = call_.agree_on(std::span<const batch_findings>(&batch, 1));
  }
  [[nodiscard]] batch_findings own_findings() const {
    return headers_.findings[call_.is_whole() ? 0 : static_cast<std::size_t>(call_.rank())];
  }

  /// Refuses batches with bad offsets or indices, or with rows that duplicates::reject forbids: then `ticket`
  /// has the error.
  [[nodiscard]] bool refuses(ticket& result) {
    const all_findings findings = joint_findings();
    if (!findings.has_error()) return false;
    call_.close();  // the ranks agree: memory that the message lacks is this rank's own error
    result = ticket_of_error(findings.error());
    return true;
  }
  /// Brings the values to the owners of their rows: what they have received, by rank; nothing if the ranks
  /// refuse the batches, and then `refused` has the error. `scans`: the ranks look at `scanned`.
  template <class Types, class Values>
  [[nodiscard]] auto exchange(const Values& values, const batch_findings& scanned, bool scans,
                              ticket& refused) {
    std::vector<received_rows<typename Types::sent, typename Types::payload_space, Exec>> received;
    meet(scanned, offer<Types::reads_in_place>(values), scans);
    if (refuses(refused)) return received;
    received = receive<typename Types::payload_space>(values, static_cast<std::int64_t>(table_.width()));
    if constexpr (Types::duplicates_policy::forbids) {
      find_duplicates(received);
      if (refuses(refused)) received.clear();
    }
    return received;
  }
  /// Refuses gradients by the policy; what it leaves out counts as skipped steps.
  template <class Nonfinite, class State>
  [[nodiscard]] bool refuses_gradients(ticket& result, State& state) {
    if constexpr (Nonfinite::looks) {
      const all_findings findings = joint_findings();
      if (findings.nonfinite() == 0) return false;
      call_.close();
      if constexpr (Nonfinite::reports)
        result = ticket_of_error(findings.nonfinite_error(static_cast<std::int64_t>(table_.width())));
      else
        for (int r = call_.first(); r < call_.last(); ++r) count_skipped(state, r);
      return true;
    }
    return false;
  }

  /// The rows and values of the shards that this thread acts for, by rank. Values of a batch lie in rows of
  /// `columns` elements while they travel.
  template <class Home, class Values>
  [[nodiscard]] auto receive(const Values& values, std::int64_t columns) {
    using T = typename Values::element;
    std::vector<received_rows<T, Home, Exec>> received;
    if constexpr (std::is_same_v<Home, near_space<Exec>>)
      if (in_place_) {
        const int rank = call_.rank();
        received.push_back(receive_in_place<T, Home>(
            verb_, instance(rank), headers_, static_cast<std::int64_t>(table_.rows_of(rank)),
            static_cast<std::int64_t>(table_.width()), owned(rank), values.row_of_item == items_->place,
            values.factors != nullptr));
        return received;
      }
    const fence_on_exception<Exec> work(exec_);
    shared_items<Exec> shared;
    if (values.is_shared) shared = share_items(verb_, exec_, *items_, values.keys());
    const item_groups& own_groups = *items_;
    const item_groups& groups = values.is_shared ? shared.groups : own_groups;
    const std::int64_t* const list = values.is_shared ? shared.list.data() : values.row_of_item;
    auto packed = payload<T, Home>(exec_, "values", groups.items(), columns);
    values.pack(exec_, list, groups.items(), packed);
    for (int r = call_.first(); r < call_.last(); ++r)
      received.push_back(exchange_groups<T, Home>(r, groups, shared, values.factors, packed));
    return received;
  }

  /// Counts the rows of the shards of this thread that are named more than once, and the ranks meet.
  template <class Received>
  void find_duplicates(const std::vector<Received>& received) {
    batch_findings batch = own_findings();
    if (!joint_findings().has_error())
      for (int r = call_.first(); r < call_.last(); ++r) {
        if (items_->everywhere && r != 0) continue;  // all ranks see the same rows: rank 0 counts them
        count_duplicates(instance(r), table_, r, received[static_cast<std::size_t>(r - call_.first())].plan,
                         batch);
      }
    meet_again(batch);
  }

 private:
  [[nodiscard]] all_findings joint_findings() const {
    if constexpr (requires { table_.part_notes(); })
      return {verb_, whole_ref(table_).note(), headers_.findings, call_.is_whole(), table_.part_notes()};
    else
      return {verb_, whole_ref(table_).note(), headers_.findings, call_.is_whole()};
  }
  [[nodiscard]] const owned_rows<Exec>* owned(int rank) const {
    return plan_ == nullptr ? nullptr : &plan_->owned_by(rank);
  }
  template <class State>
  static void count_skipped(State& state, int rank) {
    if constexpr (requires { state.shard(rank); })
      ++state.shard(rank).clock()->skipped;
    else
      for (auto& part : state) count_skipped(part, rank);
  }

  /// The groups of all ranks for the shard of one.
  template <class T, class Home>
  received_rows<T, Home, Exec> exchange_groups(int rank, const item_groups& groups,
                                               const shared_items<Exec>& shared, const double* factors,
                                               const tensor<T, Home>& packed) {
    using local_list = near_space<Exec>;
    const Exec shard_exec = instance(rank);
    const auto in_begin = begins_for(call_, *items_, headers_.in_begin, rank);
    const bool is_shared = shared.groups.begin.size() > 1;
    const auto value_in_begin =
        is_shared ? begins_for(call_, groups, in_begin_of(call_, groups), rank) : in_begin;
    const std::int64_t items = in_begin.back(), width = static_cast<std::int64_t>(packed.width());
    received_rows<T, Home, Exec> received;
    exchange_parts lists(call_, rank);
    const auto add = [&](auto& target, const char* name, const auto* source) {
      using element = std::remove_const_t<std::remove_pointer_t<decltype(source)>>;
      target = payload<element, local_list>(shard_exec, name, items);
      lists.add(*items_, source, in_begin, target.data(), 1);
    };
    if (plan_ == nullptr) add(received.rows, "rows of all ranks", items_->rows);
    if (is_shared)
      add(received.numbers, "numbers of values", static_cast<const std::int64_t*>(shared.numbers.data()));
    if (factors != nullptr) add(received.factors, "factors of values", factors);
    received.buffer = payload<T, Home>(shard_exec, "values of all ranks", value_in_begin.back(), width);
    const T* const values = packed.data();
    if constexpr (std::is_same_v<Home, local_list>) {
      lists.add(groups, values, value_in_begin, received.buffer.data(), width);
      lists.template move<local_list>(exec_, shard_exec);
    } else {
      exchange_parts rows(call_, rank);
      rows.add(groups, values, value_in_begin, received.buffer.data(), width);
      lists.template move<local_list>(exec_, shard_exec);
      rows.template move<Home>(exec_, shard_exec);
    }
    sort(rank, received, factors != nullptr, in_begin, {value_in_begin.begin(), value_in_begin.end() - 1});
    return received;
  }

  /// Sorts the rows that have come, and leads the plan to their values: item i of group r has value
  /// numbers[i] + shift[r], or without numbers value i. Enqueues only.
  template <class T, class Home>
  void sort(int rank, received_rows<T, Home, Exec>& received, bool weighs,
            const std::vector<std::int64_t>& begin, std::vector<std::int64_t>&& shift) const {
    const Exec shard_exec = instance(rank);
    const bool is_shared = received.numbers.size() != 0;
    const owned_rows<Exec>* const planned = owned(rank);
    received.plan = planned != nullptr
                        ? planned->plan
                        : make_plan(shard_exec, received.rows,
                                    static_cast<std::int64_t>(table_.rows_of(rank)), bounds::unchecked{});
    received.values = read_only(make_ref(received.buffer));
    if (!is_shared && !weighs) return;
    launch_context<Exec> call(shard_exec, verb_);
    if (is_shared)
      shift_groups(call, received.numbers.data(), static_cast<std::int64_t>(received.numbers.rows()), begin,
                   std::move(shift));
    received.plan = with_values(call, received.plan, is_shared ? received.numbers.data() : nullptr,
                                weighs ? received.factors.data() : nullptr);
  }

  collective& call_;
  const char* verb_;
  const Exec& exec_;
  Table& table_;
  buckets listed_;
  const buckets* items_ = &listed_;
  const sharded_plan_storage<Exec>* plan_ = nullptr;
  batch_headers headers_;
  bool in_place_ = false;
};

}  // namespace ferry::detail
