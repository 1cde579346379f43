// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/pool_bags.hpp>
#include <ferry/bags/step_bags.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/bag_lists.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/fetch_rows.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/read_shards.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_batch.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/gather_bags.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

/// The parts of step_bags on a sharded table.
namespace ferry::detail {

/// The gradients of the weights of a batch without flaws, whose rows `access` finds. `grads` has a row for
/// each bag, as its positions get it. Blocks.
template <class Bounds, class Exec, class Access, class Named, class Bags, class Value, class Space,
          class Out, class OutSpace>
void write_weight_gradients(const Exec& exec, const Access& access, const Named& named, const Bags& bags,
                            const array_ref<Value, Space>& grads, const array_ref<Out, OutSpace>& out) {
  if (out.size() == 0) return;
  launch_context<Exec> call(exec, "step_bags");
  const std::string& label = call.label("weight_gradients");
  const offset_type<Bags>* offsets = nullptr;
  if constexpr (!std::is_same_v<Bags, std::int64_t>) offsets = indices_for_kernels(call, bags);
  const auto list = list_of_bags(bags, offsets, grads.rows(), out.rows(), false, {});
  launch_weight_gradients<Bounds>(call, access, named, nullptr, list, values_for_kernels(call, label, grads),
                                  out);
  execution_backend<Exec>::fence(exec, label);
  call.finish().drop();
}

/// The row of each position of a plan that leaves some out.
inline const std::int64_t* rows_if_skipped(const row_plan& plan) {
  return plan.storage() != nullptr && plan.storage()->bounds == bounds::skip::name ? plan.storage()->row_of
                                                                                   : nullptr;
}

/// The bags of a batch whose positions lie in buckets: the gradient of a position is that of its bag, or
/// under pooling::max its share of that. `Grads` and `Extra` as in step_bags.
template <class Bag, class Exec, class Table, class Bags, class Grads, class Extra, class Compute>
class bag_batch {
 public:
  using pooling = typename Bag::pooling;
  using chosen = typename Bag::chosen;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using value = std::remove_const_t<typename Grads::value_type>;
  using home = payload_space<Exec, typename Table::memory_space, typename Grads::memory_space>;
  static constexpr bool has_extra = !std::is_same_v<Extra, no_array>;
  static constexpr bool weighs = has_extra && !pooling::selects;
  static constexpr bool finds_maxima = pooling::selects && !has_extra;
  using sent = std::conditional_t<pooling::divides, Compute, value>;

  bag_batch(collective& call, const Exec& exec, Table& table, const Bags& bags, const Grads& grads,
            const Extra& extra)
      : call_(call), exec_(exec), table_(table), bags_(bags), grads_(grads), extra_(extra) {}
  bag_batch(const bag_batch&) = delete;
  bag_batch& operator=(const bag_batch&) = delete;

  /// Puts the positions into buckets, and finds their bags.
  template <class Named>
  void bucket(sharded_batch<Exec, Table>& batch, const Named& named) {
    const auto rows = static_cast<std::int64_t>(table_.rows());
    if constexpr (is_sharded_plan<Named>) {
      batch.use(named.storage());
      list(batch.items(), rows_if_skipped(named.storage().batch));
    } else if constexpr (pooling::divides && std::is_same_v<bounds_policy, bounds::skip> && !is_plan<Named>) {
      std::shared_ptr<void> passing;
      const row_plan plan = make_plan(exec_, indices_near(exec_, named, passing), rows, bounds_policy{});
      batch.use(bucket_rows<bounds_policy>("step_bags", exec_, table_, plan, grads_));
      list(batch.items(), rows_if_skipped(plan));
    } else {
      batch.use(bucket_rows<bounds_policy>("step_bags", exec_, table_, named, grads_));
      const std::int64_t* row_of = nullptr;
      if constexpr (is_plan<Named>) row_of = rows_if_skipped(named);
      list(batch.items(), row_of);
    }
  }
  /// As above, of bags of several tables. `near_bags`: those of the call where kernels read them.
  template <class NearBags>
  void list(const buckets& items, const std::int64_t* row_of, const NearBags& near_bags,
            const kernels::tables_of_bags& layout) {
    constexpr bool checks = !std::is_same_v<bounds_policy, bounds::unchecked>;
    const auto list_by = [&](const auto& factors) {
      return list_bags<pooling, Compute, home>(exec_, items.place, items.items(), row_of, near_bags,
                                               items.positions, checks, factors, grads_, layout);
    };
    if constexpr (weighs)
      listed_ = list_by(extra_);
    else
      listed_ = list_by(no_array{});
    call_.keep(listed_.memory);
  }
  void list(const buckets& items, const std::int64_t* row_of) { list(items, row_of, bags_, {}); }

  [[nodiscard]] bool has_bad_bags() const { return listed_.report.bad_bags != 0; }
  /// The flaws of the bags and, if the policy asks for it, with their gradients.
  template <class Nonfinite>
  [[nodiscard]] batch_findings scan() const {
    batch_findings scanned;
    scanned.take_offsets(listed_.report);
    if constexpr (Nonfinite::looks)
      if (!has_bad_bags()) scanned.take_values(scan_values(exec_, gradients()));
    return scanned;
  }
  /// Finds the share of each item in the gradient of its bag: in the columns in which it has the maximum.
  template <class Maxima>
  void share(const buckets& items, const Maxima& maxima) {
    share_gradients(exec_, items.place, listed_.bags, maxima, grads_, shares_);
  }
  void make_shares(const buckets& items) {
    shares_ = payload<sent, home>(exec_, "shares of maxima", items.items(), grads_.width());
  }
  /// The gradients of the bags, as their positions get them.
  [[nodiscard]] auto gradients() const {
    if constexpr (pooling::divides)
      return read_only(make_ref(listed_.divided));
    else
      return read_only(grads_);
  }
  /// The values that the owners of the items get.
  [[nodiscard]] auto values() const {
    if constexpr (pooling::selects)
      return batch_values<sent, home>{read_only(make_ref(shares_)), listed_.numbers, nullptr, false};
    else
      return batch_values<sent, typename decltype(gradients())::memory_space>{gradients(), listed_.bags,
                                                                              listed_.factors, true};
  }
  [[nodiscard]] const bag_lists<Compute, home>& lists() const { return listed_; }

 private:
  collective& call_;
  const Exec& exec_;
  Table& table_;
  const Bags& bags_;
  const Grads& grads_;
  const Extra& extra_;
  bag_lists<Compute, home> listed_{};
  tensor<sent, home> shares_{};
};

/// Rows of this rank's batch for kernels of its own: calls use(rows, list, bounds) with an addresser of rows,
/// a list of them and its policy of bounds, in place if all ranks agree to that, else of rows that their
/// owners have sent. Waits. One phase besides the exchanges; a later one ends the reads. `use` is called if
/// `is_good`.
template <class Chosen, class Bounds, class Home, class Exec, class Table, class Named, class Use>
void use_rows_of_batch(collective& call, const char* verb, const Exec& exec, const Table& table,
                       const sharded_batch<Exec, Table>& batch, const Named& named, bool is_good,
                       const Use& use) {
  bool reaches = false;
  if constexpr (reads_peers<Exec, Table, near_space<Exec>>)
    reaches = may_reach_shards(call, table) && kernels_read_batch(exec, named) && reaches_shards(exec, table);
  if (agree_to_read(call, exec, batch.instance(call.first()), table, reaches)) {
    if constexpr (reads_peers<Exec, Table, near_space<Exec>>)
      if (is_good) {
        const fence_on_exception<Exec> reads(exec);
        use(peer_rows<std::remove_const_t<Table>>(table), list_of_batch(named), Bounds{});
      }
    return;
  }
  row_requests<Exec, Table> requests(call, verb, exec, table);
  if constexpr (is_sharded_plan<Named>)
    requests.ask(named.storage());
  else
    requests.ask(batch.items());
  const auto arrived = fetch_rows<Chosen, Home>(requests, table);
  if (!is_good) return;
  const auto slots = requests.slots();
  const fence_at_exit<Exec> waits(exec);
  use(plain_rows(make_ref(arrived)), list_view<Exec>(slots), bounds::skip{});
}

/// The positions of the maxima of a batch without flaws, whose rows `access` finds by a list. Blocks.
template <class Element, class Pooling, class Bounds, class Exec, class Access, class List, class Bags,
          class Grads>
tensor<std::int64_t, near_space<Exec>> positions_of_maxima(const Exec& exec, const Access& access,
                                                           const List& list, const Bags& bags,
                                                           const Grads& grads) {
  using home = near_space<Exec>;
  using maximum = pooling_type<Element, void, float>;
  auto positions = payload<std::int64_t, home>(exec, "positions of maxima", grads.rows(), grads.width());
  auto maxima = payload<maximum, home>(exec, "maxima", grads.rows(), grads.width());
  const fence_on_exception<Exec> work(exec);
  pool_bags<path::automatic, Pooling, Bounds>(exec, access, list, bags, make_ref(positions), make_ref(maxima))
      .join();
  return positions;
}

/// True if a batch has a flaw, for which all ranks will refuse the step.
template <class Named>
bool has_bad_indices(const collective& call, const buckets& items, const Named& named) {
  if constexpr (is_sharded_plan<Named>)
    return named.storage().findings_of(call).out_of_range != 0;
  else
    return items.report.out_of_range != 0;
}

}  // namespace ferry::detail
