// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/device.hpp>
#include <ferry/optim/rules/adagrad.hpp>
#include <ferry/optim/rules/adam.hpp>
#include <ferry/optim/rules/sgd.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/plan/detail/prebuilt.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <type_traits>

/// The steps that the library holds, see plan/detail/prebuilt.hpp.
namespace ferry::detail {

template <class Rule>
inline constexpr bool is_prebuilt_rule =
    (is_any_of<Rule, optim::sgd, optim::adagrad, optim::adam, optim::rowwise_adagrad>);

/// True if a state is that of the library. Not asked for other rules, whose state may have another type.
template <bool Asked, class State, class Rule, class Space>
inline constexpr bool is_prebuilt_state_type = false;
template <class State, class Rule, class Space>
inline constexpr bool is_prebuilt_state_type<true, State, Rule, Space> =
    (std::is_same_v<State, optim::state<Rule, float, Space>>);

/// True if the library holds the step: a table of float, and its state in the same space.
template <class Chosen, class Exec, class Rule, class Table, class State, class Named, class Grads>
inline constexpr bool is_prebuilt_step = false;
template <class Chosen, class Exec, class Rule, class Space, class State, class Named, class Grads>
inline constexpr bool
    is_prebuilt_step<Chosen, Exec, Rule, const array_ref<float, Space>, State, const Named&, const Grads> =
        (is_prebuilt_call<Exec, Chosen> && is_prebuilt_table<array_ref<float, Space>> &&
         is_prebuilt_rule<Rule> && is_prebuilt_state_type<is_prebuilt_rule<Rule>, State, Rule, Space> &&
         is_prebuilt_index<Named> && is_prebuilt_batch<Grads, const float>);

}  // namespace ferry::detail

namespace ferry::optim::detail {

/// state_of() of the library.
template <class Rule, class StateType, class Space>
state<Rule, StateType, Space> prebuilt_state(const Rule& rule, const ferry::detail::array_label& label,
                                             device home, std::int64_t rows, std::int64_t width);

/// True if the library holds state_of().
template <class Rule, class StateType, class Space>
inline constexpr bool is_prebuilt_state =
    (device_backend<Rule>::library_has_verbs && ferry::detail::is_prebuilt_rule<Rule> &&
     std::is_same_v<StateType, float> &&
     ferry::detail::is_any_of<Space, device_space, pinned_space, mapped_space>);

}  // namespace ferry::optim::detail
