// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/step_call.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/coded_weights.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/update_rows.hpp>

#include <type_traits>

/// The path of step from its arguments to update_rows.
namespace ferry::detail {

/// The gradients are rows of the indices: one for each.
struct rows_of_indices {
  static constexpr const char* verb = "step";
  template <class Exec, class Chosen, class Named>
  static void require(const auto& table, const Named& named, const auto& grads) {
    require_batch<Exec, Chosen>(verb, table, named, grads);
  }
};

/// `Batch` says how the gradients belong to the indices, `access` where the rows lie.
template <class Chosen, class Batch = rows_of_indices, class Exec, class Rule, class Access, class State,
          class Named, class Value, class ValueSpace>
ticket step_rows(const Exec& exec, const Rule& optimizer, const Access& access, State& state,
                 const Named& named, const array_ref<Value, ValueSpace>& grads) {
  using path_policy = typename Chosen::template get<path_category, path::automatic>;
  using state_space = typename State::memory_space;
  using space = typename Access::memory_space;
  using duplicates_policy = typename Chosen::template get<duplicates_category, duplicates::sum>;
  using table_type = typename step_table<Access>::type;
  using scale_space = typename scale_space_of<table_type>::type;
  using call_type = step_call_by<Chosen, Rule, typename Access::value_type, space, State, table_type>;
  require_one_end<path_policy>();
  call_type::template require_types<Exec, Value, duplicates_policy>();
  static_assert(
      !by_host_alone<path_policy> || space::is_host_accessible == state_space::is_host_accessible,
      "ferry: path::staged steps where the table lies, so table and state must both be in host memory or both in device_space; use path::direct or make_state<Space>.");
  static_assert(
      !by_host_alone<path_policy> || !space::is_host_accessible || transform_spaces<Rule>::on_host,
      "ferry: path::staged steps on the host, but a transform reads an array in device_space; give the transform one in pinned_space or mapped_space, or use path::direct.");

  static_assert(
      !by_host_alone<path_policy> || space::is_host_accessible == scale_space::is_host_accessible,
      "ferry: path::staged steps where the table lies, so codes and scales must both be in host memory or both in device_space; use path::direct.");

  const table_type& table = access.table();
  call_type call(Batch::verb, optimizer, table, state, std::type_identity<Value>{});
  access.require_foreign(Batch::verb, named, grads);
  Batch::template require<Exec, Chosen>(table, named, grads);
  call.take_counters(exec);
  const auto job = call.job();
  if constexpr (!Access::is_strided)
    job.for_each_transform_array([&](const auto& array) { access.require_foreign(Batch::verb, array); });

  // A staged step runs where the table is, so everything that it reads must be there too.
  constexpr bool together = space::is_host_accessible == state_space::is_host_accessible &&
                            space::is_host_accessible == scale_space::is_host_accessible &&
                            (!space::is_host_accessible || transform_spaces<Rule>::on_host);
  constexpr bool only_staged =
      together && !is_host_exec<Exec> && space::is_host_accessible &&
      (is_any_of<pageable_space, state_space, scale_space> || transform_spaces<Rule>::any_pageable);
  ticket launched;
  if constexpr (only_staged)
    launched = update_rows<verb::step, Chosen, duplicates_policy, path_kind::direct, path_kind::ordered>(
        exec, access, job, named, grads, call.ends(), Batch::verb);
  else if constexpr (together)
    launched = update_rows<verb::step, Chosen, duplicates_policy>(exec, access, job, named, grads,
                                                                  call.ends(), Batch::verb);
  else
    launched = update_rows<verb::step, Chosen, duplicates_policy, path_kind::staged>(
        exec, access, job, named, grads, call.ends(), Batch::verb);
  call.template count<Value>();
  return launched;
}

}  // namespace ferry::detail
