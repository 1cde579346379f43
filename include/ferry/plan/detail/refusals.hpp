// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/plan/detail/verb_arguments.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/runtime/detail/arguments.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstddef>
#include <initializer_list>

/// Overloads for arguments that a verb can't take. They do not compile, and say why in a sentence, while a
/// compiler would list the overloads that do not match. Overloads of other libraries are better matches,
/// because these take constant references unless only a variable is missing.
#define FERRY_REFUSALS(Result, verb, call)                    \
  template <class... Arguments>                               \
    requires(::ferry::detail::Refused<call, Arguments...>)    \
  Result verb(const Arguments&...) {                          \
    ::ferry::detail::refuse<call, Arguments&...>();           \
    return Result();                                          \
  }                                                           \
  template <class... Arguments>                               \
    requires(::ferry::detail::Unwritable<call, Arguments...>) \
  Result verb(Arguments&&...) {                               \
    ::ferry::detail::refuse<call, Arguments...>();            \
    return Result();                                          \
  }

/// Refusals of a verb whose first template argument is a memory space.
#define FERRY_REFUSALS_IN_SPACE(verb, call)                \
  template <MemorySpace Space, class... Arguments>         \
    requires(::ferry::detail::Refused<call, Arguments...>) \
  ticket verb(const Arguments&...) {                       \
    ::ferry::detail::refuse<call, Arguments&...>();        \
    return {};                                             \
  }

/// A template argument that is no memory space of ferry's.
#define FERRY_REFUSALS_OF_SPACE(verb)                                               \
  template <class Space, class Exec, class... Arguments>                            \
    requires(!MemorySpace<Space> && ExecutionSpace<Exec> && !ExecutionSpace<Space>) \
  ticket verb(const Exec&, const Arguments&...) {                                   \
    detail::require_memory_space<Space>();                                          \
    return {};                                                                      \
  }

/// A braced list of indices has no type that a template could deduce.
#define FERRY_REFUSALS_OF_BRACES(verb, call)                                             \
  template <class Exec, class Table, class Index, class... Rest>                         \
  ticket verb(const Exec&, const Table&, std::initializer_list<Index>, const Rest&...) { \
    detail::fail_with<detail::flaw::braced_indices, call, Exec, Index, Rest...>();       \
    return {};                                                                           \
  }

/// A verb whose header is not included. Every other overload is a better match, because the arguments of this
/// one are converted.
#define FERRY_DECLARED_IN(header, verb)                                                                   \
  template <int Arguments = 0>                                                                            \
  ticket verb(detail::anything, detail::anything, detail::anything, detail::anything, detail::anything,   \
              detail::anything = {}, detail::anything = {}, detail::anything = {}, detail::anything = {}, \
              detail::anything = {}, detail::anything = {}, detail::anything = {}, detail::anything = {}, \
              detail::anything = {}, detail::anything = {}) {                                             \
    static_assert(Arguments != 0, "ferry: " #verb " is declared in <" header ">; include that header.");  \
    return {};                                                                                            \
  }

namespace ferry {

namespace detail {
struct anything {
  constexpr anything() = default;
  template <class T>
  constexpr anything(const T&) {}
};
}  // namespace detail

FERRY_REFUSALS(ticket, gather, detail::gather_arguments)
FERRY_REFUSALS(ticket, gather_unique, detail::gather_unique_arguments)
FERRY_REFUSALS(ticket, scatter, detail::scatter_arguments)
FERRY_REFUSALS(ticket, scatter_add, detail::scatter_add_arguments)
FERRY_REFUSALS(ticket, step, detail::step_arguments)
FERRY_REFUSALS(ticket, catch_up, detail::catch_up_arguments)
FERRY_REFUSALS(ticket, copy, detail::copy_arguments)
FERRY_REFUSALS(ticket, copy_rows, detail::copy_rows_arguments)
FERRY_REFUSALS(ticket, clone, detail::clone_arguments)
FERRY_REFUSALS(ticket, gather_bags, detail::gather_bags_arguments)
FERRY_REFUSALS(ticket, step_bags, detail::step_bags_arguments)
FERRY_DECLARED_IN("ferry/bags.hpp", gather_bags)
FERRY_DECLARED_IN("ferry/bags.hpp", step_bags)
FERRY_REFUSALS(row_plan, make_plan, detail::make_plan_arguments)
FERRY_REFUSALS(row_plan, unique, detail::unique_arguments)
FERRY_REFUSALS(std::size_t, plan_workspace_bytes, detail::plan_workspace_arguments)
FERRY_REFUSALS(ticket, quantize, detail::quantize_arguments)
FERRY_REFUSALS(ticket, dequantize, detail::dequantize_arguments)

FERRY_REFUSALS_IN_SPACE(gather, detail::gather_new_arguments)
FERRY_REFUSALS_IN_SPACE(clone, detail::clone_arguments)
FERRY_REFUSALS_OF_SPACE(gather)
FERRY_REFUSALS_OF_SPACE(clone)
template <MemorySpace Space, Element T, class... Arguments>
  requires(detail::Refused<detail::gather_new_arguments, Arguments...>)
ticket gather(const Arguments&...) {
  detail::refuse<detail::gather_new_arguments, Arguments&...>();
  return {};
}

FERRY_REFUSALS_OF_BRACES(gather, detail::gather_arguments)
FERRY_REFUSALS_OF_BRACES(scatter, detail::scatter_arguments)
FERRY_REFUSALS_OF_BRACES(scatter_add, detail::scatter_add_arguments)
template <class Exec, class Rule, class Table, class State, class Index, class... Rest>
ticket step(const Exec&, const Rule&, const Table&, const State&, std::initializer_list<Index>,
            const Rest&...) {
  detail::fail_with<detail::flaw::braced_indices, detail::step_arguments, Exec, Index, Rest...>();
  return {};
}
template <class Exec, class Index, class... Rest>
row_plan make_plan(const Exec&, std::initializer_list<Index>, const Rest&...) {
  detail::fail_with<detail::flaw::braced_indices, detail::make_plan_arguments, Exec, Index, Rest...>();
  return {};
}

namespace optim {

template <class... Arguments>
  requires(::ferry::detail::Refused<::ferry::detail::make_state_arguments, Arguments...>)
ticket make_state(const Arguments&...) {
  ::ferry::detail::refuse<::ferry::detail::make_state_arguments, Arguments&...>();
  return {};
}
FERRY_REFUSALS_IN_SPACE(make_state, ::ferry::detail::make_state_arguments)
FERRY_REFUSALS(ticket, grad_norm, ::ferry::detail::grad_norm_arguments)
FERRY_REFUSALS(ticket, clip_grad_norm, ::ferry::detail::clip_grad_norm_arguments)

}  // namespace optim

namespace init {

FERRY_REFUSALS(void, zeros, detail::zeros_arguments)
FERRY_REFUSALS(void, constant, detail::constant_arguments)
FERRY_REFUSALS(void, uniform, detail::uniform_arguments)
FERRY_REFUSALS(void, normal, detail::normal_arguments)
FERRY_REFUSALS(void, custom, detail::custom_arguments)
FERRY_REFUSALS(void, xavier_uniform, detail::xavier_arguments)
FERRY_REFUSALS(void, xavier_normal, detail::xavier_arguments)
FERRY_REFUSALS(void, kaiming_uniform, detail::kaiming_arguments)
FERRY_REFUSALS(void, kaiming_normal, detail::kaiming_arguments)
FERRY_REFUSALS(void, trunc_normal, detail::trunc_normal_arguments)

}  // namespace init
}  // namespace ferry

#undef FERRY_DECLARED_IN
#undef FERRY_REFUSALS
#undef FERRY_REFUSALS_IN_SPACE
#undef FERRY_REFUSALS_OF_BRACES
#undef FERRY_REFUSALS_OF_SPACE
