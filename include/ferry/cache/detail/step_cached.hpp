// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/update_cached.hpp>
#include <ferry/optim/detail/step_rows.hpp>

#include <type_traits>
#include <utility>

namespace ferry::detail {

/// One step on a cached table: as step_rows, on path::direct. State in host memory is cached with its rows;
/// counters of steps are not.
template <class Chosen, class Batch = rows_of_indices, class Exec, class Rule, class T, class Space,
          class State, class Named, class Value, class ValueSpace>
ticket step_cached(const Exec& exec, row_cache& cache, const Rule& optimizer,
                   const array_ref<T, Space>& table, State& state, const Named& named,
                   const array_ref<Value, ValueSpace>& grads) {
  using duplicates_policy = typename Chosen::template get<duplicates_category, duplicates::sum>;
  using call_type = step_call<Chosen, duplicates_policy, Rule, T, Space, State>;
  call_type::template require_types<Exec, Value>();
  call_type call(Batch::verb, optimizer, table, state, std::type_identity<Value>{});
  const auto job = call.job();
  job.for_each_transform_array([&](const auto& array) { require_foreign(Batch::verb, cache, array); });
  Batch::template require<Exec, Chosen>(table, named, grads);
  call.take_counters(exec);
  ticket launched =
      update_cached<Chosen, duplicates_policy>(exec, Batch::verb, cache, job, named, grads, call.ends());
  call.template count<Value>();
  return launched;
}

}  // namespace ferry::detail
