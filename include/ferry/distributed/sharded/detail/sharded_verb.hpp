// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/policy/reduce.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/tensor/tensor.hpp>

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
/// As above, by the path of the policies. `list`: of this rank's batch.
template <class Chosen, class Table, class List>
bool should_fetch_once(const Table& table, const List& list) {
  using path_policy = typename Chosen::template get<path_category, path::automatic>;
  if constexpr (path_policy::chosen_at_run_time)
    return prefers_once(table, list);
  else
    return fetches_once<Chosen>;
}

/// True if kernels of the instance read the list of rows of a sharded plan, or the indices or the row_plan of
/// a batch.
template <class Exec, class Named>
bool kernels_read_batch(const Exec& exec, const Named& named) {
  if constexpr (is_host_exec<Exec>)
    return true;
  else if constexpr (is_sharded_plan<Named>)
    return kernels_read_batch(exec, named.storage().batch);
  else if constexpr (is_plan<Named>)
    return named.storage() == nullptr ||
           (!named.storage()->on_host && named.storage()->device == execution_backend<Exec>::device_of(exec));
  else
    return !lies_elsewhere(exec, named);
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

/// The duplicates policy of a verb on a shard, which gets a plan: duplicates::reject has been decided by all
/// ranks before a shard is written, and a sum in any order is one in the order of the batch.
template <class Duplicates>
using shard_duplicates_t =
    std::conditional_t<Duplicates::forbids, duplicates::assume_unique,
                       std::conditional_t<in_any_order<Duplicates>, duplicates::sum, Duplicates>>;

/// True if a kernel of the verb may read values in the batches of other ranks.
template <class Chosen>
inline constexpr bool reads_where_they_are =
    std::is_same_v<shard_path_t<Chosen>, path::automatic> || in_batch_order<shard_path_t<Chosen>>;

/// The policies that a verb on a shard gets; bounds::unchecked is that of the plans, too.
template <class Chosen, class Duplicates>
using shard_policies = policies<shard_path_t<Chosen>, bounds::unchecked, shard_duplicates_t<Duplicates>>;

/// The policies of a step on a shard. Gradients have been scanned before.
template <class Chosen, class Duplicates>
using shard_step_policies = policies<shard_path_t<Chosen>, bounds::unchecked, shard_duplicates_t<Duplicates>,
                                     typename Chosen::template get<step_count_category, step_count::global>,
                                     typename Chosen::template get<rounding_category, rounding::nearest>>;

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

/// The list of rows of this rank's batch: indices, or a row_plan.
template <class Named>
const auto& list_of_batch(const Named& named) {
  if constexpr (is_sharded_plan<Named>)
    return named.storage().batch;
  else
    return named;
}

/// Reads rows of the shard of a rank by Path.
template <class Path>
struct shard_reader {
  template <class Exec, class Table, class Rows, class Out>
  void operator()(const Exec& shard_exec, const Table& table, int rank, const Rows& rows, Out& out) const {
    gather(shard_exec, table.shard(rank), rows, out, Path{}, bounds::unchecked{}).join();
  }
};

/// The facts of a kind of sharded table that gathers differ in:
///
///   gathered              the elements of gathered rows
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
  using gathered = T;
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

}  // namespace ferry::detail
