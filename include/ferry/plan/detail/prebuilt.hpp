// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

/// The verbs that the library holds: with default policies, on the default execution space, for tables of
/// float in the common spaces. A verb whose arguments match calls a function that no header defines, and
/// compiles nothing else. src/instances defines these functions. With CUDA they are a component,
/// ferry::instances, since nvcc takes minutes for them.
namespace ferry::detail {

template <class T, class... Others>
inline constexpr bool is_any_of = (std::is_same_v<T, Others> || ...);

template <class Exec, class Chosen>
inline constexpr bool is_prebuilt_call = (device_backend<Exec>::library_has_verbs &&
                                          std::is_same_v<Exec, Kokkos::DefaultExecutionSpace> &&
                                          std::is_same_v<Chosen, chosen_policies<>>);

template <class Table>
inline constexpr bool is_prebuilt_table = false;
template <class Space>
inline constexpr bool is_prebuilt_table<array_ref<float, Space>> =
    (is_any_of<Space, device_space, pinned_space, mapped_space>);

/// Rows on the device, of the table's elements.
template <class Batch, class T>
inline constexpr bool is_prebuilt_batch = std::is_same_v<Batch, array_ref<T, device_space>>;

template <class Named>
inline constexpr bool is_prebuilt_index = false;
template <>
inline constexpr bool is_prebuilt_index<row_plan> = true;
template <class Index, class Space>
inline constexpr bool is_prebuilt_index<array_ref<Index, Space>> =
    (is_any_of<Index, const std::int32_t, const std::int64_t> &&
     is_any_of<Space, device_space, pageable_space>);

/// True if the library holds the gather, or the scatter and scatter_add, of these arguments.
/// @{
template <class Chosen, class Exec, class Table, class Named, class Out>
inline constexpr bool is_prebuilt_gather = false;
template <class Chosen, class Exec, class T, class Space, class Named, class Out>
inline constexpr bool is_prebuilt_gather<Chosen, Exec, const array_ref<const T, Space>, const Named&,
                                         const Out> = (is_prebuilt_call<Exec, Chosen> &&
                                                       is_prebuilt_table<array_ref<T, Space>> &&
                                                       is_prebuilt_index<Named> && is_prebuilt_batch<Out, T>);
template <class Chosen, class Exec, class Table, class Named, class Values>
inline constexpr bool is_prebuilt_update = false;
template <class Chosen, class Exec, class T, class Space, class Named, class Values>
inline constexpr bool
    is_prebuilt_update<Chosen, Exec, const array_ref<T, Space>, const Named&, const Values> =
        (is_prebuilt_call<Exec, Chosen> && is_prebuilt_table<array_ref<T, Space>> &&
         is_prebuilt_index<Named> && is_prebuilt_batch<Values, const T>);
/// @}

template <class Exec, class T, class Space, class Named>
ticket prebuilt_gather(const Exec& exec, const array_ref<const T, Space>& table, const Named& rows,
                       const array_ref<T, device_space>& out);
template <class Exec, class T, class Space, class Named>
ticket prebuilt_scatter(const Exec& exec, const array_ref<T, Space>& table, const Named& rows,
                        const array_ref<const T, device_space>& values);
template <class Exec, class T, class Space, class Named>
ticket prebuilt_scatter_add(const Exec& exec, const array_ref<T, Space>& table, const Named& rows,
                            const array_ref<const T, device_space>& values);
template <class Exec, class Rule, class T, class Space, class State, class Named>
ticket prebuilt_step(const Exec& exec, const Rule& rule, const array_ref<T, Space>& table, State& state,
                     const Named& rows, const array_ref<const T, device_space>& grads);

}  // namespace ferry::detail
