// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include <cstdint>

/// Definitions of the functions that plan/detail/prebuilt.hpp declares, and macros that instantiate them for
/// tables of float. Only the sources of this folder include it.
namespace ferry::detail {

template <class Exec, class T, class Space, class Batch>
ticket prebuilt_gather(const Exec& exec, const array_ref<const T, Space>& table, const Batch& batch,
                       const array_ref<T, device_space>& out) {
  require_batch<Exec, chosen_policies<>>("gather", table, batch, out);
  return dispatch_gather<chosen_policies<>>(exec, plain_rows(table), batch, out);
}

template <class Exec, class T, class Space, class Batch>
ticket prebuilt_scatter(const Exec& exec, const array_ref<T, Space>& table, const Batch& batch,
                        const array_ref<const T, device_space>& values) {
  require_batch<Exec, chosen_policies<>>("scatter", table, batch, values);
  return update_rows<verb::scatter, chosen_policies<>, duplicates::last>(
      row_update{exec, plain_rows(table), replace_job<T, Space>{table}, batch, values});
}

template <class Exec, class T, class Space, class Batch>
ticket prebuilt_scatter_add(const Exec& exec, const array_ref<T, Space>& table, const Batch& batch,
                            const array_ref<const T, device_space>& values) {
  require_batch<Exec, chosen_policies<>>("scatter_add", table, batch, values);
  return update_rows<verb::scatter_add, chosen_policies<>, duplicates::sum>(
      row_update{exec, plain_rows(table), add_job<T, Space>{table}, batch, values});
}

template <class Exec, class Rule, class T, class Space, class State, class Batch>
ticket prebuilt_step(const Exec& exec, const Rule& rule, const array_ref<T, Space>& table, State& state,
                     const Batch& batch, const array_ref<const T, device_space>& grads) {
  return step_rows<chosen_policies<>>(exec, rule, plain_rows(table), state, batch, grads);
}

using instance_exec = Kokkos::DefaultExecutionSpace;
using indices_32 = array_ref<const std::int32_t, device_space>;
using indices_64 = array_ref<const std::int64_t, device_space>;
using host_indices_32 = array_ref<const std::int32_t, pageable_space>;
using host_indices_64 = array_ref<const std::int64_t, pageable_space>;

}  // namespace ferry::detail

namespace ferry::optim::detail {

template <class Rule, class StateType, class Space>
state<Rule, StateType, Space> prebuilt_state(const Rule& rule, const ferry::detail::array_label& label,
                                             device location, std::int64_t rows, std::int64_t width) {
  return state_of<Rule, StateType, Space>(rule, label, location, rows, width);
}

}  // namespace ferry::optim::detail

/// CALL(indices, ...) for a plan and for each array of indices.
#define FERRY_FOR_INDICES(CALL, ...) \
  CALL(row_plan, __VA_ARGS__)        \
  CALL(indices_32, __VA_ARGS__)      \
  CALL(indices_64, __VA_ARGS__)      \
  CALL(host_indices_32, __VA_ARGS__) \
  CALL(host_indices_64, __VA_ARGS__)

#define FERRY_INSTANTIATE_ROWS(NAMED, SPACE)                                                                \
  template ticket prebuilt_gather(const instance_exec&, const array_ref<const float, SPACE>&, const NAMED&, \
                                  const array_ref<float, device_space>&);                                   \
  template ticket prebuilt_scatter(const instance_exec&, const array_ref<float, SPACE>&, const NAMED&,      \
                                   const array_ref<const float, device_space>&);                            \
  template ticket prebuilt_scatter_add(const instance_exec&, const array_ref<float, SPACE>&, const NAMED&,  \
                                       const array_ref<const float, device_space>&);

#define FERRY_INSTANTIATE_STEP(NAMED, SPACE, RULE)                                                        \
  template ticket prebuilt_step(const instance_exec&, const optim::RULE&, const array_ref<float, SPACE>&, \
                                optim::state<optim::RULE, float, SPACE>&, const NAMED&,                   \
                                const array_ref<const float, device_space>&);

#define FERRY_INSTANTIATE_STATE(RULE, SPACE)                                                                \
  template state<RULE, float, SPACE> prebuilt_state(const RULE&, const ferry::detail::array_label&, device, \
                                                    std::int64_t, std::int64_t);

/// step and make_state for a rule.
#define FERRY_STEPS(RULE)                                       \
  namespace ferry::detail {                                     \
  FERRY_FOR_INDICES(FERRY_INSTANTIATE_STEP, device_space, RULE) \
  FERRY_FOR_INDICES(FERRY_INSTANTIATE_STEP, pinned_space, RULE) \
  FERRY_FOR_INDICES(FERRY_INSTANTIATE_STEP, mapped_space, RULE) \
  }                                                             \
  namespace ferry::optim::detail {                              \
  FERRY_INSTANTIATE_STATE(RULE, device_space)                   \
  FERRY_INSTANTIATE_STATE(RULE, pinned_space)                   \
  FERRY_INSTANTIATE_STATE(RULE, mapped_space)                   \
  }
