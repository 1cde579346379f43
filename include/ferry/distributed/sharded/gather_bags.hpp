// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/pool_bags.hpp>
#include <ferry/bags/gather_bags.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/fetch_rows.hpp>
#include <ferry/distributed/sharded/detail/read_shards.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

namespace ferry::kernels {

/// Reports the bad offsets of bags, and if `indices` are given the positions in bags that have no row. One
/// thread for each bag.
template <class Offset, class Index>
struct look_at_bags {
  bag_list<Offset> bags;
  const std::int64_t* slots;  ///< -1 for no row
  const Index* indices;

  static std::int64_t bytes_each() { return 2 * sizeof(std::int64_t); }
  KOKKOS_FUNCTION void operator()(std::int64_t bag) const {
    const bag_range range = bags.range(bag, true);
    if (indices == nullptr) return;
    for (std::int64_t p = range.begin; p < range.end; ++p)
      if (slots[p] < 0)
        bags.report.out_of_range(p, static_cast<std::uint64_t>(static_cast<std::int64_t>(indices[p])));
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Checks the types of bags on a sharded table, as for an ordinary one.
template <class Exec, class Table, class Indices, class Offsets, class Batch, class Chosen, bool TakesStep>
consteval void require_sharded_bags() {
  require_sharded_verb<Exec, Table, Indices, Batch, Chosen, TakesStep, TakesStep>();
  require_offsets<Exec, Offsets>();
}

/// Checks the shapes of the indices and bags of this rank.
template <class Chosen, class Exec, class Table, class Named, class Bags, class Batch>
void require_sharded_bag_batch(const char* verb, const collective& call, const Table& table,
                               const Named& named, const Bags& bags, const Batch& batch) {
  const auto whole = whole_ref(table);
  if constexpr (is_sharded_plan<Named>)
    require_sharded_plan<Chosen>(verb, named, table);
  else
    require_bag_indices<Exec, Chosen>(verb, named, whole);
  require_bags(verb, bags, routed_positions(named), batch);
  require_shapes(verb, whole, batch.rows(), batch);
  require_apart(verb, call, table, batch);
}

/// True if a position with a bad index is an error.
template <class Bounds, class Named>
bool is_checked(const Named& named) {
  if constexpr (is_sharded_plan<Named>)
    return named.storage().bounds == bounds::check::name;
  else
    return is_strict<Bounds>(named);
}

/// Pools rows that have arrived: position p has row slots[p], or none for -1.
template <class Pooling, class Bounds, class Exec, class Bags, class Arrived, class Slots, class Extra,
          class Out, class OutSpace>
void pool_slots(const Exec& exec, const Arrived& arrived, const Slots& slots, const Bags& bags,
                const Extra& extra, const array_ref<Out, OutSpace>& out) {
  pool_bags<path::automatic, Pooling, Bounds>(exec, access_to<Arrived, true>(arrived, "gather_bags"),
                                              list_view<Exec>(slots), bags, extra, out)
      .join();
}

/// The flaws of bags whose positions have rows by slots. `looks`: positions without a row are some. Blocks.
template <class Exec, class Named, class Bags, class Slots>
index_report report_of_bags(const char* verb, const Exec& exec, const Named& named, const Bags& bags,
                            std::int64_t count, const buckets& items, const Slots& slots, bool looks) {
  launch_context<Exec> call(exec, verb);
  const std::string& label = call.label("bags", "look");
  const report_writer report = call.report();
  const offset_type<Bags>* offsets = nullptr;
  if constexpr (!std::is_same_v<Bags, std::int64_t>) offsets = indices_for_kernels(call, bags);
  const auto list = list_of_bags(bags, offsets, count, items.positions, true, report);
  std::shared_ptr<void> passing;
  const auto launch_look = [&]<class Index>(const Index* indices) {
    if (count > 0)
      launch(exec, label, count,
             kernels::look_at_bags<offset_type<Bags>, Index>{list, slots.data(), looks ? indices : nullptr});
  };
  if constexpr (is_plan<Named> || is_sharded_plan<Named>)
    launch_look(static_cast<const std::int64_t*>(nullptr));
  else
    launch_look(indices_for_kernels(call, indices_near(exec, named, passing)));
  execution_backend<Exec>::fence(exec, label);
  index_report flaws = read_report<Exec>(report);
  call.finish().drop();
  if constexpr (is_plan<Named> || is_sharded_plan<Named>)
    if (looks && items.report.out_of_range != 0) flaws = items.report;
  return flaws;
}

/// Pools rows that have arrived. The errors of the offsets and of bad positions within bags are those of an
/// ordinary table.
template <class Pooling, class Bounds, class Exec, class Table, class Named, class Bags, class Arrived,
          class Extra, class Out, class OutSpace>
ticket pool_arrived(const char* verb, const Exec& exec, const Table& table, const Named& named,
                    const Bags& bags, const row_requests<Exec, Table>& requests, const Arrived& arrived,
                    const Extra& extra, const array_ref<Out, OutSpace>& out) {
  const auto slots = requests.slots();
  const fence_on_exception<Exec> work(exec);
  if constexpr (std::is_same_v<Bounds, bounds::unchecked>) {
    pool_slots<Pooling, bounds::unchecked>(exec, arrived, slots, bags, extra, out);
    return {};
  } else {
    const bool strict = is_checked<Bounds>(named);
    const buckets& items = requests.items();
    const index_report report = report_of_bags(verb, exec, named, bags, out.rows(), items, slots, strict);
    try {
      if (strict)
        pool_slots<Pooling, bounds::check>(exec, arrived, slots, bags, extra, out);
      else
        pool_slots<Pooling, bounds::skip>(exec, arrived, slots, bags, extra, out);
    } catch (const ferry::out_of_range&) {  // the error below is in the terms of the whole table
    }
    if (report.out_of_range == 0 && report.bad_bags == 0) return {};
    const auto note = whole_ref(table).note();
    return ticket_of_error(found_error(report, verb, note, note, static_cast<std::int64_t>(table.width()),
                                       items.positions, items.signed_indices));
  }
}

/// As agree_to_read_batch: not on path::exchange, as pooling reads a row once for each position. A rank that
/// `Finds` maxima has an array for them, too.
template <class Asked, class OutSpace, class Extra, bool Finds, class Exec, class Table, class Named>
bool agree_to_pool(collective& call, const Exec& exec, const Table& table, const Named& named) {
  constexpr bool writes_extra = [] {
    if constexpr (Finds && !is_host_exec<Exec>)
      return !std::is_same_v<typename Extra::memory_space, pageable_space>;
    else
      return true;
  }();
  if constexpr (writes_extra && !fetches_once<Asked>)
    return agree_to_read_batch<Asked, OutSpace>(call, exec, table, named);
  else
    return agree_to_read(call, exec, shard_instance(table.comm(), call.first(), exec), table, false);
}

/// Pools rows that kernels read in the shards of all ranks. Waits.
template <class Pooling, class Bounds, class Exec, class Table, class List, class Bags, class Extra,
          class Out, class OutSpace>
ticket pool_in_place(const Exec& exec, const Table& table, const List& list, const Bags& bags,
                     const Extra& extra, const array_ref<Out, OutSpace>& out) {
  const fence_at_exit<Exec> waits(exec);
  ticket pooled =
      pool_bags<path::automatic, Pooling, Bounds>(exec, peer_rows<Table>(table), list, bags, extra, out);
  waits.fence();
  return pooled;
}

}  // namespace ferry::detail

namespace ferry {

namespace detail {

/// `extra` as in pool_checked.
template <class... Policies, class Exec, class Table, class Indices, class Offsets, class Pooled, class Extra>
ticket pool_sharded_bags(const Exec& exec, const Table& table, const Indices& indices, const Offsets& offsets,
                         Pooled& pooled, const Extra& extra) {
  using bag = bag_policies<Policies...>;
  using asked = typename bag::chosen;
  using pooling = typename bag::pooling;
  using chosen = local_policies<asked>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  require_sharded_bags<Exec, Table, Indices, Offsets, Pooled, chosen, false>();
  const auto sink = make_ref(pooled);
  using out_space = typename decltype(sink)::memory_space;
  static_assert(NumberElement<typename sharded_kind<Table>::gathered> &&
                    NumberElement<typename decltype(sink)::value_type>,
                "ferry: bags of rows are pooled by arithmetic, so table and pooled rows must hold numbers.");
  constexpr bool finds = pooling::selects && !std::is_same_v<Extra, no_array>;
  const auto& named = sharded_rows_named_by(indices);
  const auto bags = bags_named_by(offsets);
  collective call(table.comm(), add_plan(note_of<>("gather_bags", table), indices, fetches_once<asked>));
  try {
    require_sharded_bag_batch<chosen, Exec>("gather_bags", call, table, named, bags, sink);
    require_extra_output<pooling>("gather_bags", extra, routed_positions(named), sink);
    const auto& list = list_of_batch(named);
    if (agree_to_pool<asked, out_space, Extra, finds>(call, exec, table, named)) {
      if constexpr (reads_peers<Exec, Table, out_space>) {
        ticket read = pool_in_place<pooling, bounds_policy>(exec, table, list, bags, extra, sink);
        call.agree();  // no rank leaves before all have read: the rows are those of one point in time
        call.close();
        return read;
      }
    }
    row_requests<Exec, Table> requests(call, "gather_bags", exec, table);
    constexpr bool is_planned = is_sharded_plan<Indices>;  // then all ranks ask alike
    requests.template ask<bounds_policy>(
        named, is_planned ? fetches_once<asked> : should_fetch_once<asked>(table, list));
    using home = payload_space<Exec, typename Table::memory_space, out_space>;
    const auto arrived = fetch_rows<chosen, home>(requests, table);
    if constexpr (Table::sharding_type::replicates) call.agree();  // as ranks that read in place
    call.close();
    return pool_arrived<pooling, bounds_policy>("gather_bags", exec, table, named, bags, requests, arrived,
                                                extra, sink);
  } catch (...) {
    call.report_failure();
    throw;
  }
}

}  // namespace detail

/// pooled[b] = the rows of bag b of this rank's batch, pooled. Arguments and policies are those of
/// gather_bags from an ordinary table, and so are the bits: a bag lies within the batch of one rank, and the
/// rows that have come from their owners are added in the order of their positions. Rows of a
/// sharded_quantized_table come as codes, and are decoded as they are added. Indices may also be a
/// sharded_plan, or a row_plan for tables of as many rows. path::exchange fetches each different row once.
///
/// Collective, see sharded_table; a rank without bags passes empty arrays. Blocks until the rows are pooled.
/// ticket::wait() throws out_of_range for bad indices and offsets of this rank; other ranks do not learn of
/// them. Throws invalid_argument for shapes that do not fit, and peer_error if that happened to another
/// rank.
template <class Exec, detail::ShardedRows Table, class Indices, class Offsets, class Pooled,
          class... Policies>
  requires(detail::Fits<detail::gather_bags_arguments, const Exec&, const Table&, const Indices&,
                        const Offsets&, Pooled, Policies...> &&
           (!detail::AnArray<Policies> && ...))
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather_bags(
    const Exec& exec, const Table& table, const Indices& indices, const Offsets& offsets, Pooled&& pooled,
    Policies...) {
  detail::require_output<Pooled>();
  return detail::pool_sharded_bags<Policies...>(exec, table, indices, offsets, pooled, detail::no_array{});
}

/// As above, with the weights of the positions, or under pooling::max the array that receives the positions
/// of the maxima, in this rank's batch.
template <class Exec, detail::ShardedRows Table, class Indices, class Offsets, class Pooled, class Extra,
          class... Policies>
  requires(detail::AnArray<Extra>&& detail::Fits<detail::gather_bags_arguments, const Exec&, const Table&,
                                                 const Indices&, const Offsets&, Pooled, Extra, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather_bags(
    const Exec& exec, const Table& table, const Indices& indices, const Offsets& offsets, Pooled&& pooled,
    Extra&& extra, Policies...) {
  using bag = detail::bag_policies<Policies...>;
  detail::require_output<Pooled>();
  detail::require_bag_extra<Exec, typename bag::pooling, Extra>();
  return detail::pool_sharded_bags<Policies...>(exec, table, indices, offsets, pooled, make_ref(extra));
}

}  // namespace ferry
