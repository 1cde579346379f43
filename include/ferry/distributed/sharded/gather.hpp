// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/fetch_rows.hpp>
#include <ferry/distributed/sharded/detail/read_shards.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/gather_to.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/future.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// The rows by kernels that read the shards of all ranks. Waits.
template <class Asked, class Bounds, class Exec, class Table, class List, class Out, class OutSpace>
ticket gather_in_place(const Exec& exec, const Table& table, const List& list,
                       const array_ref<Out, OutSpace>& out) {
  static const std::string label = "ferry::distributed::gathered";
  ticket read;
  if constexpr (fetches_once<Asked>)
    read = gather_from_peers<Bounds>(
        exec, table, plan_of_list<Bounds>(exec, list, static_cast<std::int64_t>(table.rows())), out, true);
  else
    read = gather_from_peers<Bounds>(exec, table, list, out, prefers_once(table, list));
  execution_backend<Exec>::fence(exec, label);
  return read;
}

template <class... Policies, class Exec, class Table, class Indices, class Out>
ticket gather_sharded(const Exec& exec, const Table& table, const Indices& indices, Out& out) {
  using asked = chosen_policies<Policies...>;
  using chosen = local_policies<asked>;
  using path_policy = typename asked::template get<path_category, path::automatic>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  if constexpr (reads_shards<path_policy>) {
    return checked_peer_gather<asked>(exec, table, indices, out);
  } else {
    require_sharded_verb<Exec, Table, Indices, Out, chosen, false>();
    const auto sink = make_ref(out);
    using out_space = typename decltype(sink)::memory_space;
    sharded_kind<Table>::template require_output<std::remove_const_t<decltype(sink)>>();
    const auto& named = sharded_rows_named_by(indices);
    collective call(table.comm(), add_plan(note_of<>("gather", table), indices, fetches_once<asked>));
    try {
      require_sharded_batch<Exec, chosen>("gather", call, table, named, sink);
      require_array_device("gather", exec, sink);
      const auto& list = list_of_batch(named);
      if (agree_to_read_batch<asked, out_space>(call, exec, table, named)) {
        if constexpr (reads_peers<Exec, Table, out_space>) {
          ticket read = gather_in_place<asked, bounds_policy>(exec, table, list, sink);
          call.agree();  // no rank leaves before all have read: the rows are those of one point in time
          call.close();
          return read;
        }
      }
      row_requests<Exec, Table> requests(call, "gather", exec, table);
      constexpr bool is_planned = is_sharded_plan<Indices>;  // then all ranks ask alike
      requests.template ask<bounds_policy>(
          named, is_planned ? fetches_once<asked> : should_fetch_once<asked>(table, list));
      using home = payload_space<Exec, typename Table::memory_space, out_space>;
      const auto arrived = fetch_rows<chosen, home>(requests, table);
      if constexpr (Table::sharding_type::replicates) call.agree();  // as ranks that read in place
      call.close();
      requests.place(arrived, sink);
      return requests.finish();
    } catch (...) {
      call.report_failure();
      throw;
    }
  }
}

}  // namespace detail

/// out[p] = row indices[p] of a sharded table, for each position p of this rank's batch. Arguments and
/// policies are those of gather from an ordinary table; indices may also be a sharded_plan, or a row_plan
/// for tables of as many rows. With path::exchange each different row comes once from its owner; with a
/// sharded_plan all ranks must name that path, or none. The table is a sharded_table or a
/// sharded_quantized_table, whose codes travel and are decoded here, as gather from a quantized_tensor does.
///
/// path::automatic reads the rows as path::peer does if all ranks can, see path::peer below, and then
/// waits for all of them.
///
/// Collective, see sharded_table; a rank without indices passes empty arrays. Blocks until the rows are in
/// `out`. ticket::wait() throws out_of_range for bad indices of this rank; other ranks do not learn of them.
/// Throws invalid_argument for shapes that do not fit, and peer_error if that happened to another rank.
///
/// path::peer is not collective and does not block: kernels of `exec` read the shards of all ranks. A rank
/// reads what the collective calls that it has taken part in have written. Indices may be a row_plan, and no
/// sharded_plan. Throws invalid_argument if this process does not reach all shards (the table was made
/// inside of communicator::run, or other processes have not shared theirs), if the device does not reach a
/// shard, and for more than 64 ranks.
template <class Exec, detail::ShardedRows Table, class Indices, class Out, class... Policies>
  requires(
      detail::Fits<detail::gather_arguments, const Exec&, const Table&, const Indices&, Out, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Table& table, const Indices& indices, Out&& out, Policies...) {
  detail::require_output<Out>();
  return detail::gather_sharded<Policies...>(exec, table, indices, out);
}

namespace detail {

template <class T, class Space, class Exec, class Table, class Indices, class... Policies>
future<tensor<T, Space>> gather_sharded_into_new(const Exec& exec, const Table& table, const Indices& indices,
                                                 Policies... asked) {
  using chosen = chosen_policies<Policies...>;
  require_execution_space<Exec>();
  if constexpr (!is_sharded_plan<Indices>) require_indices<Indices>();
  std::int64_t positions = 0;
  bool holes = std::is_same_v<typename chosen::template get<bounds_category, bounds::check>, bounds::skip>;
  if constexpr (is_sharded_plan<Indices>) {
    positions = indices.positions();
    holes = indices.storage().bounds == bounds::skip::name;
  } else if constexpr (is_plan<Indices>) {
    positions = indices.positions();
    holes = indices.storage() != nullptr && indices.storage()->bounds == bounds::skip::name;
  } else {
    positions = index_ref(indices).rows();
  }
  tensor<T, Space> rows;
  ticket cleared;
  const auto make = [&] {
    rows = tensor<T, Space>(table.label() + "::gathered", memory_home(exec), positions, table.width());
    if (holes) cleared = clear(exec, make_ref(rows));
  };
  if constexpr (reads_shards<typename chosen::template get<path_category, path::automatic>>) {
    if (execution_backend<Exec>::capturing(exec))
      throw invalid_argument(
          "ferry::gather: the instance is being captured into a graph, but a new tensor would be made once only; gather into a batch of yours");
    make();
  } else {  // a rank that lacks the memory for its rows tells the others
    collective call(table.comm(), note_of<>("gather into a new tensor", table));
    call.guarded([&] {
      make();
      cleared.join();
      call.agree();
      call.close();
    });
  }
  ticket work = gather(exec, table, indices, rows, asked...);
  cleared.drop();
  return {std::move(work), std::move(rows)};
}

}  // namespace detail

/// The rows indices[p] of a sharded table as a new tensor in Space, which the future holds; as gather<Space>
/// from an ordinary table. Rows of a quantized table become floats. Indices may also be a sharded_plan.
/// Positions without a row (bounds::skip) are zero. Collective, see sharded_table, and blocks until the rows
/// are there, except by path::peer. Throws as the gather into an existing batch; bad_alloc, and peer_error if
/// that happened to another rank. get() throws out_of_range under bounds::check.
template <MemorySpace Space, class Exec, detail::ShardedRows Table, class Indices, class... Policies>
[[nodiscard("the rows are only to be had from the future that this returns")]] auto gather(
    const Exec& exec, const Table& table, const Indices& indices, Policies... asked) {
  using element = typename detail::sharded_kind<Table>::gathered;
  return detail::gather_sharded_into_new<element, Space>(exec, table, indices, asked...);
}

/// As above, with the elements converted to Out.
template <MemorySpace Space, Element Out, class Exec, detail::ShardedRows Table, class Indices,
          class... Policies>
[[nodiscard("the rows are only to be had from the future that this returns")]] auto gather(
    const Exec& exec, const Table& table, const Indices& indices, Policies... asked) {
  return detail::gather_sharded_into_new<Out, Space>(exec, table, indices, asked...);
}

}  // namespace ferry
