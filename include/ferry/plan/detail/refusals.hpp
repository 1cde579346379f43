// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/row_plan.hpp>
#include <ferry/runtime/detail/arguments.hpp>
#include <ferry/runtime/ticket.hpp>

#include <array>
#include <cstddef>
#include <initializer_list>

/// How each verb is called. Constraints, refusals and sentences come from these descriptions. `require` says
/// in one sentence how the verb is called; it fails for a call that fits none of the forms.
namespace ferry::detail {

/// The description of a verb: its name, how it is called, and the roles of its arguments.
#define FERRY_VERB(verb, sentence, ...)             \
  struct verb##_arguments : roles {                 \
    static constexpr std::array forms{__VA_ARGS__}; \
    template <bool Accepted, class...>              \
    static consteval void require() {               \
      static_assert(Accepted, "ferry: " sentence);  \
    }                                               \
  };

FERRY_VERB(
    gather,
    "gather is called as gather(exec, table, indices, out, policies...); as gather<Space>(exec, table, indices, policies...), which returns a new tensor in that memory space; or as gather(exec, rule, table, state, indices, out, policies...), which catches up first.",
    call_of(execution_space, table, indices, output),
    call_of(execution_space, rule, table, state, indices, output),
    call_of(execution_space, rule, records, indices, output),
    call_of(execution_space, codes, indices, written_codes))
FERRY_VERB(
    gather_new,
    "a gather into a new tensor is called as gather<Space>(exec, table, indices, policies...), or gather<Space, T>(...) with its element type.",
    call_of(execution_space, table, indices))
FERRY_VERB(gather_unique, "gather_unique is called as gather_unique(exec, table, indices, out, policies...).",
           call_of(execution_space, table, indices, output))
FERRY_VERB(scatter, "scatter is called as scatter(exec, table, indices, values, policies...).",
           call_of(execution_space, written_table, indices, array))
FERRY_VERB(scatter_add, "scatter_add is called as scatter_add(exec, table, indices, values, policies...).",
           call_of(execution_space, sink, indices, array))
FERRY_VERB(
    step,
    "step is called as step(exec, rule, table, state, indices, grads, policies...), or without the indices for a step of all rows, with the state that make_state(rule, table) made; only of optim::records as step(exec, rule, records, indices, grads, policies...).",
    call_of(execution_space, rule, written_table, state, indices, array),
    call_of(execution_space, rule, records, indices, array),
    call_of(execution_space, rule, written_table, state, array),
    call_of(execution_space, rule, records, array))
FERRY_VERB(
    catch_up,
    "catch_up is called as catch_up(exec, rule, table, state, policies...), of optim::records as catch_up(exec, rule, records, policies...).",
    call_of(execution_space, rule, written_table, state), call_of(execution_space, rule, records))
FERRY_VERB(copy, "copy is called as copy(exec, from, to, policies...).",
           call_of(execution_space, source, sink), call_of(execution_space, codes, written_codes))
FERRY_VERB(
    copy_rows,
    "copy_rows is called as copy_rows(exec, source, source_rows, target, target_rows, policies...), with arrays, rows_along<D>(array), for_each_table(list) or quantized tables of one kind, and lists of rows.",
    call_of(execution_space, row_tables, indices, row_tables, indices))
FERRY_VERB(
    resolve,
    "resolve is called as resolve(exec, hot, rows, slots, policies...), with a cached_table of cache::lru, a list of rows and an array for their slots; without slots hot.prefetch(exec, rows, policies...) brings the rows.",
    call_of(execution_space, table, indices, output))
FERRY_VERB(
    clone,
    "clone is called as clone(exec, array) or clone(exec, array, label), and as clone<Space>(exec, array) for a copy in another of ferry's memory spaces.",
    call_without_policies(execution_space, source), call_without_policies(execution_space, source, text))
FERRY_VERB(
    make_state,
    "make_state needs an optimizer rule, ferry::optim::adam say, then the table: make_state(rule, table), with a step_count policy after it if rows are counted. It takes no execution space.",
    call_of(rule, table), call_without_policies(rule, table, any))
FERRY_VERB(
    grad_norm,
    "grad_norm needs gradients: arrays, sparse_grads or bag_grads. It is called as grad_norm(exec, grads...).",
    call_without_policies(execution_space, gradients).with(gradients, 1000))
FERRY_VERB(
    clip_grad_norm,
    "clip_grad_norm needs gradients: arrays, sparse_grads or bag_grads. It is called as clip_grad_norm(exec, max_norm, grads...).",
    call_without_policies(execution_space, number, gradients).with(gradients, 1000))
FERRY_VERB(
    gather_bags,
    "gather_bags is called as gather_bags(exec, table, indices, offsets, pooled, policies...), with the weights of the positions after `pooled` if there are any.",
    call_of(execution_space, tables, indices, offsets, output).with(array, 1))
FERRY_VERB(
    step_bags,
    "step_bags is called as step_bags(exec, rule, table, state, indices, offsets, pooled_grads, policies...), with the weights of the positions after `pooled_grads` if there are any; over for_each_table with a range of states in place of the state.",
    call_of(execution_space, rule, table_list, states, indices, offsets, array).with(array, 2),
    call_of(execution_space, rule, written_table, state, indices, offsets, array).with(array, 2))
FERRY_VERB(
    make_plan,
    "make_plan is called as make_plan(exec, indices, rows, policies...), with the number of rows of the tables or one of the tables, or as make_plan(exec, indices, rows, workspace, policies...).",
    call_of(execution_space, indices, rows).with(array, 1))
FERRY_VERB(
    plan_workspace,
    "plan_workspace_bytes is called as plan_workspace_bytes(exec, positions, rows), with the number of indices, and the number of rows of the tables or one of the tables.",
    call_without_policies(execution_space, integer, rows))
FERRY_VERB(
    unique,
    "unique is called as unique(exec, indices, rows, policies...), with the number of rows of the tables or one of the tables.",
    call_of(execution_space, indices, rows))
FERRY_VERB(
    quantize,
    "quantize is called as quantize(exec, from, table, policies...), with an array of numbers and a quantized_tensor to write.",
    call_of(execution_space, array, written_codes))
FERRY_VERB(
    dequantize,
    "dequantize is called as dequantize(exec, table, to, policies...), with a quantized_tensor and an array of numbers to write.",
    call_of(execution_space, codes, output))
FERRY_VERB(zeros, "init::zeros is called as zeros(exec, array).",
           call_without_policies(execution_space, sink))
FERRY_VERB(constant, "init::constant is called as constant(exec, array, value).",
           call_without_policies(execution_space, sink, any))
FERRY_VERB(uniform,
           "init::uniform is called as uniform(exec, array, low, high, seed); the seed is an integer.",
           call_without_policies(execution_space, sink, number, number, integer))
FERRY_VERB(normal,
           "init::normal is called as normal(exec, array, mean, deviation, seed); the seed is an integer.",
           call_without_policies(execution_space, sink, number, number, integer))
FERRY_VERB(
    custom,
    "init::custom is called as custom(exec, array, function), with a function of the row and the column.",
    call_without_policies(execution_space, sink, any))
FERRY_VERB(
    xavier,
    "init::xavier_uniform and xavier_normal are called as xavier_uniform(exec, array, gain, seed); the seed is an integer.",
    call_without_policies(execution_space, output, number, integer))
FERRY_VERB(
    kaiming,
    "init::kaiming_uniform and kaiming_normal are called as kaiming_uniform(exec, array, {.after = ...}, seed); the seed is an integer.",
    call_without_policies(execution_space, output, object, integer))
FERRY_VERB(
    trunc_normal,
    "init::trunc_normal is called as trunc_normal(exec, array, mean, deviation, low, high, seed); the seed is an integer.",
    call_without_policies(execution_space, output, number, number, number, number, integer))

#undef FERRY_VERB

struct anything {
  constexpr anything() = default;
  template <class T>
  constexpr anything(const T&) {}
};

/// The forms of step with indices, and those of all rows.
/// @{
struct indexed_step_arguments : step_arguments {
  static constexpr std::array forms{step_arguments::forms[0], step_arguments::forms[1]};
};
struct dense_step_arguments : step_arguments {
  static constexpr std::array forms{step_arguments::forms[2], step_arguments::forms[3]};
};
/// @}

}  // namespace ferry::detail

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

FERRY_REFUSALS(ticket, gather, detail::gather_arguments)
FERRY_REFUSALS(ticket, gather_unique, detail::gather_unique_arguments)
FERRY_REFUSALS(ticket, scatter, detail::scatter_arguments)
FERRY_REFUSALS(ticket, scatter_add, detail::scatter_add_arguments)
FERRY_REFUSALS(ticket, step, detail::step_arguments)
FERRY_REFUSALS(ticket, catch_up, detail::catch_up_arguments)
FERRY_REFUSALS(ticket, copy, detail::copy_arguments)
FERRY_REFUSALS(ticket, copy_rows, detail::copy_rows_arguments)
FERRY_REFUSALS(ticket, resolve, detail::resolve_arguments)
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
