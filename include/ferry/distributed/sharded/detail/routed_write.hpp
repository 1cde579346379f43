// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/gather_together.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/push_values.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/rows_once.hpp>
#include <ferry/distributed/sharded/detail/sharded_call.hpp>
#include <ferry/distributed/sharded/detail/values_in_place.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/detail/write_choice.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// The first phases of a verb that writes, up to that in which all ranks know of all batches: what each rank
/// has for each owner, what is wrong with it, and how the values travel. Nothing is written anywhere if a
/// rank has a bad index, or a row that duplicates::reject forbids.
template <class Choice, class Exec, class Table, class Named, class Values>
struct routed_write : sharded_call<Exec, Table, Named> {
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
  /// Rows that come from host memory and go there pass through host memory alone.
  static constexpr bool may_pull = routes_by_kernels<Exec> && finds_owners_in_kernels<Table> &&
                                   (is_host_exec<Exec> || !home::is_host_accessible);
  /// True if the verb on a shard sorts its rows whatever they are: while the values come.
  static constexpr bool sorts =
      duplicates_policy::combines && duplicates_policy::needs_plan && !in_any_order<duplicates_policy>;
  /// Values of several ranks lie whole elements apart only if these are as large as their alignment.
  static constexpr bool may_read_in_place = sizeof(sent) == alignof(sent) && Choice::reads_in_place &&
                                            !in_any_order<duplicates_policy> &&
                                            reads_other_memory<Exec, typename Table::memory_space>;

  /// True if the verb moves one value to each row as it is: the owner may find it without sorting.
  static constexpr bool moves_winners = may_read_in_place && !is_planned && Choice::moves_winners &&
                                        !is_host_exec<Exec> && !duplicates_policy::combines &&
                                        !duplicates_policy::forbids && !sums &&
                                        std::is_same_v<value, typename Table::value_type>;

  /// True if ranks may write the values to the shards where they win.
  static constexpr bool may_push = moves_winners && std::is_same_v<space, device_space> &&
                                   std::is_same_v<typename Table::memory_space, device_space>;

  const Values& values;
  batch_findings scanned{};  ///< of the values of this rank
  routed_lists lists{};
  batch_headers headers{};
  bool pulls = false;
  bool pushes = false;  ///< not the owners read the values, but the ranks write them
  std::shared_ptr<void> wins{};
  tensor<sent, home> local_sums{};     ///< of the rows of a plan of the batch, if `sums` and kernels route
  owned_batch joined{};                ///< of this call, if it looks for duplicates before it pulls
  const owned_batch* owned = nullptr;  ///< the rows of the shard, if they are known before values are pulled

  routed_write(const char* name, const Exec& instance, Table& rows, const Named& indices,
               const Values& sources, const call_note& note)
      : base(name, instance, rows, indices, sums, note), values(sources) {}

  void check() {
    require_sharded_batch<Exec, typename Choice::chosen>(this->verb, call, table, named, values);
    require_array_device(this->verb, exec, values);
  }
  void route() {
    this->routes_anew = sums && is_on_devices();
    if constexpr (may_pull && sums) {
      if (shows_batches(call) && (!is_planned || this->routes_anew) && kernels_read_batch(exec, named))
        sum_by_kernels();
    } else if constexpr (may_pull && !is_planned) {
      if (shows_batches(call) && kernels_read(exec, named)) {
        routes.batch = route_by_kernels<bounds_policy>(this->verb, exec, table, named, lists, values);
        call.keep(lists.memory);
      }
    } else if constexpr (may_pull) {
      if (is_on_devices()) await_values();
    }
    if (lists.memory == nullptr) route_by_host();
  }
  void agree() {
    if (!is_planned || this->routes_anew)
      agree_on_routes();
    else
      agree_on_plan();
    if constexpr (duplicates_policy::forbids) {
      batch_findings batch = this->own_findings();
      count_forbidden(batch);
      this->exchange_findings(batch);
    }
  }
  [[nodiscard]] bool refuse() { return this->refuse_batches(); }

 private:
  /// True if the lists of the plan lie on the devices of all ranks.
  [[nodiscard]] bool is_on_devices() const {
    if constexpr (is_planned)
      return named.storage().on_devices;
    else
      return false;
  }
  /// Waits for the work that makes the values of the batch.
  void await_values() const {
    static const std::string label = "ferry::distributed::made";
    launch_context<Exec> work(exec, this->verb);
    work.reads_from(values, true);
    execution_backend<Exec>::fence(exec, label);
    work.finish().drop();
  }
  void route_by_host() {
    if constexpr (!is_planned) {
      routes.batch = route_batch<bounds_policy>(this->verb, exec, table, named);
      if constexpr (sums) routes.batch = route_once(routes.batch);
    } else if (this->routes_anew) {
      routes.batch = route_once(named.storage().routes_on_host(exec).batch);
    }
  }
  /// Sums the values of each row of the batch, and routes the different rows.
  void sum_by_kernels() {
    row_plan plan;
    if constexpr (is_planned)
      plan = named.storage().batch;
    else
      plan = plan_of_list<bounds_policy>(exec, named, static_cast<std::int64_t>(table.rows()));
    using list_space = space_of_plans<Exec>;
    const std::int64_t count = plan.unique_count();
    local_sums = payload<sent, home>(exec, "sums", count, this->width());
    scatter(exec, local_sums, plan.inverse<list_space>(), values, bounds::skip{}, duplicates::sum{}).drop();
    const auto different = plan.unique_rows<list_space>();
    routes.batch = route_by_kernels<bounds::unchecked>(this->verb, exec, table, index_ref(different), lists,
                                                       read_only(make_ref(local_sums)));
    call.keep(lists.memory);
    routes.batch.positions = plan.positions();
    routes.batch.signed_indices = plan.storage()->signed_indices;
    if (plan.storage()->checked) routes.batch.report = plan.storage()->read_report();
  }
  template <lane_parts Parts>
  [[nodiscard]] batch_offer own_offer(const routed_lists& offered, const route_groups& route) const {
    const Exec shard_exec = this->instance(call.rank());
    if constexpr (sums)
      return show_batch<Parts>(call, exec, shard_exec, offered, route, read_only(make_ref(local_sums)));
    else
      return show_batch<Parts>(call, exec, shard_exec, offered, route, values);
  }
  /// True if this rank can write its values to the shards of all processes. Threads read each other's
  /// batches.
  [[nodiscard]] bool offers_to_push() const {
    if constexpr (may_push) {
      return rank_lanes_of(call) != nullptr && pushes_units(values) && may_reach_shards(call, table) &&
             reaches_shards(exec, table);
    } else {
      return false;
    }
  }
  /// The lists of the batch, with room for what their owners say. A batch that alone does not make the ranks
  /// push has its values in the lane, too: owners pull if all batches are small.
  [[nodiscard]] batch_offer offer_to_push() {
    batch_offer offer = routes.batch.routed() < fewest_pushed
                            ? own_offer<lane_parts::claimed_rows>(lists, routes.batch)
                            : own_offer<lane_parts::claims>(lists, routes.batch);
    if (offer.is_made != 0 && offer.wins == nullptr) {  // the lane has nothing: all items are the rank's own
      const auto items = static_cast<std::size_t>(routes.batch.routed());
      wins = engine::get(exec)->device_scratch(items < 1 ? 1 : items);
      offer.wins = static_cast<std::uint8_t*>(wins.get());
    }
    offer.pushes = offer.is_made;
    return offer;
  }
  /// The headers of all batches. The routes are complete afterwards, unless owners pull, or a rank has a bad
  /// index, for which nothing is written.
  void agree_on_routes() {
    batch_offer offer;
    if constexpr (may_pull)
      if (lists.memory != nullptr)
        offer = offers_to_push() ? offer_to_push() : own_offer<lane_parts::rows>(lists, routes.batch);
    headers = exchange_headers(call, routes.batch, scanned, offer);
    take_headers(routes, call.is_whole(), headers);
    findings = headers.findings;
    if (call.is_whole()) return;
    if constexpr (may_pull) {
      pushes = can_push(headers, static_cast<std::int64_t>(table.rows()));
      if (!pushes && lacks_values(headers)) {
        if (offer.lacks_values != 0) {
          rank_lanes_of(call)->end_reads();  // nobody has opened what this call put there
          offer = own_offer<lane_parts::rows>(lists, routes.batch);
        }
        headers.offers = call.all_gather(std::span<const batch_offer>(&offer, 1));
      }
      pulls = agree_to_pull<Exec>(call, headers);
      pushes = pushes && pulls;
      if (pulls) return;
    }
    for (const batch_findings& rank : findings)
      if (rank.out_of_range != 0) return;
    if constexpr (may_pull)
      if (lists.memory != nullptr) bring_to_host(exec, lists, routes.batch);
    exchange_rows(call, table.label(), routes);
  }
  /// The findings of a plan and of the values. If its lists lie on devices the ranks offer their values, if
  /// their space allows.
  void agree_on_plan() {
    if constexpr (is_planned) {
      const auto& plan = named.storage();
      findings = plan.routes.findings;
      batch_findings batch = this->own_findings();
      batch.take_values(scanned);
      if (!plan.on_devices) {
        if constexpr (Choice::scans) this->exchange_findings(batch);
        return;
      }
      batch_offer offer;
      if constexpr (may_pull) offer = own_offer<lane_parts::values>(plan.lists, plan.routes.batch);
      headers = exchange_offers(call, plan.headers, batch, offer);
      findings = headers.findings;
      pulls = agree_to_pull<Exec>(call, headers);
      if (pulls) owned = &plan.owned;
    }
  }
  /// Adds the rows of the shards of this thread that duplicates::reject forbids.
  void count_forbidden(batch_findings& batch) {
    if constexpr (may_pull)
      if (pulls) {
        const int rank = call.rank();
        if (this->joint_findings().has_error()) return;
        if (owned == nullptr) {
          joined = join_batches(this->verb, this->instance(rank), rank, headers,
                                static_cast<std::int64_t>(table.rows_of(rank)));
          owned = &joined;
        }
        if (owned->plan.unique_count() == owned->plan.positions()) return;
        routing<typename base::wire> named_rows;
        named_rows.is_whole = false;
        named_rows.rows_in = tensor<std::int64_t, typename base::wire>("rows", owned->rows.rows());
        copy(this->instance(rank), owned->rows, named_rows.rows_in).join();
        return count_duplicates(call, table, named_rows, batch);
      }
    count_duplicates(call, table, this->current_routes(), batch);
  }
};

}  // namespace ferry::detail
