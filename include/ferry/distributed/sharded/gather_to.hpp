// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/gather.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/gather_to.hpp>
#include <ferry/runtime/future.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ferry {

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
