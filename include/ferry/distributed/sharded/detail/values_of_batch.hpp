// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/sharded_batch.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// True if a verb of the policies `Chosen` reads values of T where they are. Values of several ranks lie
/// whole elements apart only if these are as large as their alignment.
template <class Chosen, class Exec, class Table, class T, class Home>
inline constexpr bool reads_in_place =
    sizeof(T) == alignof(T) && reads_where_they_are<Chosen>&& std::is_same_v<Home, near_space<Exec>> &&
    (is_host_exec<Exec> || std::is_same_v<typename Table::memory_space, device_space>);

/// The types of a write of values to a sharded table, by its policies: Asked is summing_policies or
/// writing_policies.
template <class Asked, class Exec, class Table, class Values>
struct write_types {
  using chosen = typename Asked::chosen;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using duplicates_policy = typename Asked::duplicates;
  using value = std::remove_const_t<typename Values::value_type>;
  /// Elements that travel to the owners, and their memory space on the way.
  /// @{
  using sent = std::conditional_t<Asked::reduce::sums_locally, accumulation_t<value>, value>;
  using payload_space =
      detail::payload_space<Exec, typename Table::memory_space, typename Values::memory_space>;
  /// @}
  static constexpr bool reads_in_place = detail::reads_in_place<chosen, Exec, Table, sent, payload_space>;
};

/// The values of a batch whose positions have a row each. Waits for what makes them.
template <class Bounds, class Exec, class Table, class Named, class Value, class Space>
batch_values<std::remove_const_t<Value>, Space> values_of_positions(sharded_batch<Exec, Table>& batch,
                                                                    const char* verb, const Exec& exec,
                                                                    Table& table, const Named& named,
                                                                    const array_ref<Value, Space>& values) {
  if constexpr (is_sharded_plan<Named>) {
    static const std::string label = "ferry::distributed::made";
    launch_context<Exec> work(exec, verb);
    work.reads_from(values, true);
    execution_backend<Exec>::fence(exec, label);
    work.finish().drop();
    batch.use(named.storage());
  } else {
    batch.use(bucket_rows<Bounds>(verb, exec, table, named, values));
  }
  return {read_only(values), batch.items().place};
}

/// Under reduce::by_rank: the sums of the values of each row, in the accumulation type.
template <class Bounds, class Exec, class Table, class Named, class Value, class Space, class Sum, class Home>
batch_values<Sum, Home> values_of_rows(sharded_batch<Exec, Table>& batch, const char* verb, const Exec& exec,
                                       Table& table, const Named& named,
                                       const array_ref<Value, Space>& values, tensor<Sum, Home>& sums) {
  const row_plan plan =
      plan_of_list<Bounds>(exec, list_of_batch(named), static_cast<std::int64_t>(table.rows()));
  sums = payload<Sum, Home>(exec, "sums", plan.unique_count(), values.width());
  scatter(exec, sums, plan.inverse<near_space<Exec>>(), values, bounds::skip{}, duplicates::sum{}).drop();
  batch_values<Sum, Home> summed{read_only(make_ref(sums))};
  batch.use(bucket_different_rows(verb, exec, table, plan, summed.rows));
  summed.row_of_item = batch.items().place;
  return summed;
}

/// The values of a batch in buckets, by the policy of sums `Reduce`. `sums` keeps them if there are any.
template <class Reduce, class Bounds, class Exec, class Table, class Named, class Values, class Sums>
auto values_for_owners(sharded_batch<Exec, Table>& batch, const char* verb, const Exec& exec, Table& table,
                       const Named& named, const Values& values, [[maybe_unused]] Sums& sums) {
  if constexpr (Reduce::sums_locally)
    return values_of_rows<Bounds>(batch, verb, exec, table, named, values, sums);
  else
    return values_of_positions<Bounds>(batch, verb, exec, table, named, values);
}

}  // namespace ferry::detail
