// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/detail/routing.hpp>
#include <ferry/distributed/sharded_plan.hpp>
#include <ferry/distributed/sharded_table.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/detail/array_device.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// The path of the verbs on the shards. Their batches are buffers in host memory, which leaves
/// path::cooperative nothing to share.
template <class Chosen>
using shard_path_t =
    std::conditional_t<splits_rows<typename Chosen::template get<path_category, path::automatic>>,
                       path::automatic, typename Chosen::template get<path_category, path::automatic>>;

template <class Indices>
decltype(auto) sharded_rows_named_by(const Indices& indices) {
  if constexpr (is_sharded_plan<Indices>)
    return (indices);
  else
    return rows_named_by(indices);
}

/// Checks the types of a verb's arguments as for an ordinary table.
template <class Exec, class Table, class Indices, class Batch, class Chosen, bool TakesDuplicates,
          bool TakesStep = false>
consteval void require_sharded_verb() {
  using ordinary = tensor<typename Table::value_type, typename Table::memory_space>;
  using named = std::conditional_t<is_sharded_plan<Indices>, row_plan, Indices>;
  if constexpr (is_sharded_plan<Indices>)
    static_assert(std::is_same_v<Indices, sharded_plan<Exec>>,
                  "ferry: a sharded_plan serves verbs of the execution space that made it.");
  require_row_verb<Exec, ordinary, named, Batch, Chosen, TakesDuplicates, TakesStep>();
}

/// Checks the shapes of a verb's arguments as for an ordinary table.
template <class Exec, class Chosen, class Table, class Named, class Batch>
void require_sharded_batch(const char* verb, const collective& call, const Table& table, const Named& named,
                           const Batch& batch) {
  const auto whole = whole_ref(table);
  if constexpr (is_sharded_plan<Named>) {
    require_sharded_plan<Chosen>(verb, named, table);
    require_shapes(verb, whole, named.positions(), batch);
  } else {
    require_batch<Exec, Chosen>(verb, whole, named, batch);
  }
  for (int r = call.first(); r < call.last(); ++r)
    if (overlap(make_ref(table.shard(r)), batch))
      throw invalid_argument(std::string("ferry::") + verb + ": " + batch.describe() + " and a shard of " +
                             whole.describe() + " overlap in memory");
}

/// The rows of the batch in the order of the route.
template <class Exec, class Wire, class Value, class Space>
auto values_by_route(const Exec& exec, const row_route<Wire>& route, const array_ref<Value, Space>& values) {
  tensor<std::remove_const_t<Value>, Wire> made("values", route.routed(), values.width());
  gather(exec, values, route.place, made, bounds::unchecked{}).wait();
  return made;
}

/// Rows in the order of the route into the rows of the batch.
template <class Exec, class Wire, class T, class Out, class OutSpace>
void place_by_route(const Exec& exec, const row_route<Wire>& route, const tensor<T, Wire>& arrived,
                    const array_ref<Out, OutSpace>& out) {
  scatter(exec, out, route.place, arrived, bounds::unchecked{}, duplicates::assume_unique{}).wait();
}

}  // namespace ferry::detail
