// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/policy/reduce.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// The path of the verbs on the shards. path::cooperative would share rows between a device and host threads,
/// which other ranks need, too.
template <class Chosen>
using shard_path_t =
    std::conditional_t<splits_rows<typename Chosen::template get<path_category, path::automatic>>,
                       path::automatic, typename Chosen::template get<path_category, path::automatic>>;

/// The path between a buffer of rows and an array or shard in Space, if path::automatic was asked for: the
/// positions of a route leave nothing to sort, and host threads are busy with the other ranks.
template <class Exec, class Space>
using buffer_path = std::conditional_t<is_host_exec<Exec> || std::is_same_v<Space, pageable_space>,
                                       path::automatic, path::direct>;
/// The path of a gather from a shard in Space to a buffer.
template <class Chosen, class Exec, class Space>
using shard_read_path_t = std::conditional_t<std::is_same_v<shard_path_t<Chosen>, path::automatic>,
                                             buffer_path<Exec, Space>, shard_path_t<Chosen>>;

/// The policies of a gather as verbs on ordinary tables know them: without path::exchange.
template <class List>
struct local_policies_of;
template <class... Ps>
struct local_policies_of<policies<Ps...>> {
  using type = chosen_policies<std::conditional_t<is_between_ranks<Ps>, path::automatic, Ps>...>;
};
template <class Chosen>
using local_policies = typename local_policies_of<typename Chosen::list>::type;
/// True if a gather fetches each different row once.
template <class Chosen>
inline constexpr bool fetches_once =
    is_between_ranks<typename Chosen::template get<path_category, path::automatic>>;

/// True if path::automatic fetches each different row once: if a row_plan says that this halves the rows
/// that travel. Without a plan the rows would have to be sorted first, which only wide rows and many
/// duplicates repay. Each rank decides for itself.
template <class Table, class Named>
bool prefers_once([[maybe_unused]] const Table& table, [[maybe_unused]] const Named& named) {
  if constexpr (is_plan<Named> && !Table::sharding_type::replicates)
    return table.comm().size() > 1 && table.comm().acting_rank() >= 0 &&
           named.unique_count() <= named.positions() / 2;
  else
    return false;
}
template <class Chosen, class Table, class Named>
bool should_fetch_once(const Table& table, const Named& named) {
  using path_policy = typename Chosen::template get<path_category, path::automatic>;
  if constexpr (path_policy::chosen_at_run_time)
    return prefers_once(table, named);
  else
    return fetches_once<Chosen>;
}

/// True if kernels of the instance read the list of rows of a sharded plan, or the indices or the row_plan of
/// a batch.
template <class Exec, class Named>
bool kernels_read_batch(const Exec& exec, const Named& named) {
  if constexpr (is_sharded_plan<Named>)
    return named.storage().batch.storage() != nullptr && kernels_read(exec, named.storage().batch);
  else
    return kernels_read(exec, named);
}

/// A plan of the batch: `list` itself, or one that is made of it.
template <class Bounds, class Exec, class List>
row_plan plan_of_list(const Exec& exec, const List& list, std::int64_t rows) {
  if constexpr (is_plan<List>)
    return list;
  else
    return make_plan(exec, list, rows, Bounds{});
}

/// The policies of a sum over ranks: `reduce`, and in `chosen` those that verbs on ordinary tables know.
template <class... Ps>
struct summing_policies {
  using asked = chosen_policies<Ps...>;
  using reduce = typename asked::template get<reduce_category, ferry::reduce::in_order>;
  using chosen = typename asked::template without<reduce_category>;
  using duplicates = typename chosen::template get<duplicates_category, ferry::duplicates::sum>;
  static_assert(asked::template at_most_one<reduce_category>,
                "ferry: at most one reduce policy may be given.");
  static_assert(
      !reduce::sums_locally || std::is_same_v<duplicates, ferry::duplicates::sum>,
      "ferry: under reduce::by_rank each rank sums its duplicates first, so it goes with duplicates::sum only.");
};
/// The policies of a scatter.
template <class... Ps>
struct writing_policies {
  using reduce = ferry::reduce::in_order;
  using chosen = chosen_policies<Ps...>;
  using duplicates = typename chosen::template get<duplicates_category, ferry::duplicates::last>;
};

template <class Indices>
decltype(auto) sharded_rows_named_by(const Indices& indices) {
  if constexpr (is_sharded_plan<Indices>)
    return (indices);
  else
    return rows_named_by(indices);
}

template <class Named>
std::int64_t routed_positions(const Named& named) {
  if constexpr (is_sharded_plan<Named>)
    return named.positions();
  else
    return positions_of(named);
}

/// Reads the rows of a shard by Path.
template <class Path>
struct shard_reader {
  template <class Call, class Rows, class Out>
  void operator()(const Call& call, int rank, const Rows& rows, const Out& out) const {
    gather(call.instance(rank), std::as_const(call.table).shard(rank), rows, out, Path{}, bounds::unchecked{})
        .join();
  }
};

/// The facts of a kind of sharded table that gathers differ in:
///
///   wired                 the elements of a row that travels
///   gathered              the elements of gathered rows
///   arrived<Wired, Home>  rows of a batch in a buffer of the ranks
///   reader<Chosen, Exec>  reads rows of a shard by the policies of the call
///   lies_in<S>            whether shards lie in a memory space
///   require_output<Out>() static_asserts on the elements that rows become
///   for_each_part(table, use)
///                         calls use(part) for each array of the rows, a sharded_table
template <class Table>
struct sharded_kind;
template <class Table>
struct sharded_kind<const Table> : sharded_kind<Table> {};

template <class T, class Space, class Spread>
struct sharded_kind<sharded_table<T, Space, Spread>> {
  using wired = T;
  using gathered = T;
  template <class Wired, class Home>
  using arrived = tensor<Wired, Home>;
  template <class Chosen, class Exec>
  using reader = shard_reader<shard_read_path_t<Chosen, Exec, Space>>;
  template <class S>
  static constexpr bool lies_in = std::is_same_v<S, Space>;

  template <class Out>
  static consteval void require_output() {
    require_convertible<typename Out::value_type, T>();
  }
  template <class Table, class Use>
  static void for_each_part(Table& table, const Use& use) {
    use(table);
  }
};

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

/// Checks that a batch shares no memory with the shards that this object holds: owners read batches, and
/// write their shards, without waiting for each other.
template <class Table, class Batch>
void require_apart(const char* verb, const collective& call, const Table& table, const Batch& batch) {
  sharded_kind<Table>::for_each_part(table, [&](const auto& part) {
    for (int r = 0; r < call.ranks(); ++r)
      if (part.holds(r) && overlap(make_ref(part.shard(r)), batch))
        throw invalid_argument(joined("ferry::", verb, ": ", batch.describe(), " and a shard of ",
                                      whole_ref(table).describe(), " overlap in memory"));
  });
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
  require_apart(verb, call, table, batch);
}

/// The rows of the batch in the order of the route, in a buffer in Payload.
template <class Payload, class Exec, class Wire, class Value, class Space>
auto values_by_route(const Exec& exec, const row_route<Wire>& route, const array_ref<Value, Space>& values) {
  auto rows = payload<std::remove_const_t<Value>, Payload>(exec, "values", route.routed(), values.width());
  gather(exec, values, route.place, rows, buffer_path<Exec, Space>{}, bounds::unchecked{}).join();
  return rows;
}

/// The sums of the rows of the batch that name one row, in the accumulation type and in the order of a route
/// that names each row once.
template <class Payload, class Exec, class Wire, class Value, class Space>
auto sums_by_route(const Exec& exec, const row_route<Wire>& route, const array_ref<Value, Space>& values) {
  using sum = accumulation_t<std::remove_const_t<Value>>;
  auto sums = payload<sum, Payload>(exec, "sums", route.routed(), values.width());
  scatter(exec, sums, route.slot, values, bounds::skip{}, duplicates::sum{}).join();
  return sums;
}

/// Rows in the order of the route into the rows of the batch.
template <class Exec, class Wire, class T, class Payload, class Out, class OutSpace>
void place_by_route(const Exec& exec, const row_route<Wire>& route, const tensor<T, Payload>& arrived,
                    const array_ref<Out, OutSpace>& out) {
  if (route.unique) {
    gather(exec, arrived, route.slot, out, buffer_path<Exec, OutSpace>{}, bounds::skip{}).join();
    return;
  }
  scatter(exec, out, route.place, arrived, buffer_path<Exec, OutSpace>{}, bounds::unchecked{},
          duplicates::assume_unique{})
      .join();
}

}  // namespace ferry::detail
