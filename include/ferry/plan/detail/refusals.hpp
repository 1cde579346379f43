// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/runtime/detail/arguments.hpp>
#include <ferry/runtime/ticket.hpp>

#include <initializer_list>

/// Overloads for arguments that a verb can't take. They do not compile, and say why in a sentence, where a
/// compiler would list the overloads that do not match.
namespace ferry {

template <class... Arguments>
  requires(detail::flaw_of_gather<Arguments...>() != detail::flaw::none)
ticket gather(const Arguments&...) {
  detail::say<detail::flaw_of_gather<Arguments...>(), detail::refusing::gather, Arguments...>();
  return {};
}
template <MemorySpace Space, class... Arguments>
  requires(detail::flaw_of_new_gather<Arguments...>() != detail::flaw::none)
ticket gather(const Arguments&...) {
  detail::say<detail::flaw_of_new_gather<Arguments...>(), detail::refusing::gather, Arguments...>();
  return {};
}
template <MemorySpace Space, Element T, class... Arguments>
  requires(detail::flaw_of_new_gather<Arguments...>() != detail::flaw::none)
ticket gather(const Arguments&...) {
  detail::say<detail::flaw_of_new_gather<Arguments...>(), detail::refusing::gather, Arguments...>();
  return {};
}
template <class... Arguments>
  requires(detail::flaw_of_gather<Arguments...>() != detail::flaw::none)
ticket scatter(const Arguments&...) {
  detail::say<detail::flaw_of_gather<Arguments...>(), detail::refusing::scatter, Arguments...>();
  return {};
}
template <class... Arguments>
  requires(detail::flaw_of_gather<Arguments...>() != detail::flaw::none)
ticket scatter_add(const Arguments&...) {
  detail::say<detail::flaw_of_gather<Arguments...>(), detail::refusing::scatter_add, Arguments...>();
  return {};
}
template <class... Arguments>
  requires(detail::flaw_of_step<Arguments...>() != detail::flaw::none)
ticket step(const Arguments&...) {
  detail::say<detail::flaw_of_step<Arguments...>(), detail::refusing::step, Arguments...>();
  return {};
}
template <class... Arguments>
  requires(detail::flaw_of_copy<Arguments...>() != detail::flaw::none)
ticket copy(const Arguments&...) {
  detail::say<detail::flaw_of_copy<Arguments...>(), detail::refusing::copy, Arguments...>();
  return {};
}
template <class... Arguments>
  requires(detail::flaw_of_clone<Arguments...>() != detail::flaw::none)
ticket clone(const Arguments&...) {
  detail::say<detail::flaw_of_clone<Arguments...>(), detail::refusing::clone, Arguments...>();
  return {};
}
template <MemorySpace Space, class... Arguments>
  requires(detail::flaw_of_clone<Arguments...>() != detail::flaw::none)
ticket clone(const Arguments&...) {
  detail::say<detail::flaw_of_clone<Arguments...>(), detail::refusing::clone, Arguments...>();
  return {};
}
template <class... Arguments>
  requires(detail::flaw_of_gather_bags<Arguments...>() != detail::flaw::none)
ticket gather_bags(const Arguments&...) {
  detail::say<detail::flaw_of_gather_bags<Arguments...>(), detail::refusing::gather_bags, Arguments...>();
  return {};
}
template <class... Arguments>
  requires(detail::flaw_of_catch_up<Arguments...>() != detail::flaw::none)
ticket step_bags(const Arguments&...) {
  detail::say<detail::flaw_of_catch_up<Arguments...>(), detail::refusing::step_bags, Arguments...>();
  return {};
}
template <class... Arguments>
  requires(detail::flaw_of_make_plan<Arguments...>() != detail::flaw::none)
row_plan make_plan(const Arguments&...) {
  detail::say<detail::flaw_of_make_plan<Arguments...>(), detail::refusing::make_plan, Arguments...>();
  return {};
}
template <class... Arguments>
  requires(detail::flaw_of_conversion<Arguments...>() != detail::flaw::none)
ticket quantize(const Arguments&...) {
  detail::say<detail::flaw_of_conversion<Arguments...>(), detail::refusing::quantize, Arguments...>();
  return {};
}
template <class... Arguments>
  requires(detail::flaw_of_conversion<Arguments...>() != detail::flaw::none)
ticket dequantize(const Arguments&...) {
  detail::say<detail::flaw_of_conversion<Arguments...>(), detail::refusing::dequantize, Arguments...>();
  return {};
}
template <class... Arguments>
  requires(detail::flaw_of_catch_up<Arguments...>() != detail::flaw::none)
ticket catch_up(const Arguments&...) {
  detail::say<detail::flaw_of_catch_up<Arguments...>(), detail::refusing::catch_up, Arguments...>();
  return {};
}

/// A braced list has no type that a template could deduce.
template <class Exec, class Table, class Index, class... Rest>
ticket gather(const Exec&, const Table&, std::initializer_list<Index>, const Rest&...) {
  detail::say<detail::flaw::braced_indices, detail::refusing::gather, Exec, Index, Rest...>();
  return {};
}
template <class Exec, class Table, class Index, class... Rest>
ticket scatter(const Exec&, const Table&, std::initializer_list<Index>, const Rest&...) {
  detail::say<detail::flaw::braced_indices, detail::refusing::scatter, Exec, Index, Rest...>();
  return {};
}
template <class Exec, class Table, class Index, class... Rest>
ticket scatter_add(const Exec&, const Table&, std::initializer_list<Index>, const Rest&...) {
  detail::say<detail::flaw::braced_indices, detail::refusing::scatter_add, Exec, Index, Rest...>();
  return {};
}
template <class Exec, class Rule, class Table, class State, class Index, class... Rest>
ticket step(const Exec&, const Rule&, const Table&, const State&, std::initializer_list<Index>,
            const Rest&...) {
  detail::say<detail::flaw::braced_indices, detail::refusing::step, Exec, Index, Rest...>();
  return {};
}
template <class Exec, class Index, class... Rest>
row_plan make_plan(const Exec&, std::initializer_list<Index>, const Rest&...) {
  detail::say<detail::flaw::braced_indices, detail::refusing::make_plan, Exec, Index, Rest...>();
  return {};
}

namespace init {

template <class... Arguments>
  requires(detail::flaw_of_init<Arguments...>() != detail::flaw::none)
void zeros(const Arguments&...) {
  detail::say<detail::flaw_of_init<Arguments...>(), detail::refusing::zeros, Arguments...>();
}
template <class... Arguments>
  requires(detail::flaw_of_init<Arguments...>() != detail::flaw::none)
void constant(const Arguments&...) {
  detail::say<detail::flaw_of_init<Arguments...>(), detail::refusing::constant, Arguments...>();
}
template <class... Arguments>
  requires(detail::flaw_of_init<Arguments...>() != detail::flaw::none)
void uniform(const Arguments&...) {
  detail::say<detail::flaw_of_init<Arguments...>(), detail::refusing::uniform, Arguments...>();
}
template <class... Arguments>
  requires(detail::flaw_of_init<Arguments...>() != detail::flaw::none)
void normal(const Arguments&...) {
  detail::say<detail::flaw_of_init<Arguments...>(), detail::refusing::normal, Arguments...>();
}
template <class... Arguments>
  requires(detail::flaw_of_init<Arguments...>() != detail::flaw::none)
void custom(const Arguments&...) {
  detail::say<detail::flaw_of_init<Arguments...>(), detail::refusing::custom, Arguments...>();
}

}  // namespace init
}  // namespace ferry
