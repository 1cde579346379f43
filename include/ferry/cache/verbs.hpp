// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/gather_bags.hpp>
#include <ferry/bags/step_bags.hpp>
#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/cached_access.hpp>
#include <ferry/cache/detail/make_cache.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/optim/catch_up.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/optim/step.hpp>
#include <ferry/rows/clone.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/gather_to.hpp>
#include <ferry/rows/gather_unique.hpp>
#include <ferry/rows/init.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/rows/scatter_add.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

/// @file
/// Verbs on a cached table. Arguments, bits and errors are those of the verb on any table.
///
///   gather, gather_unique  into a batch or a new tensor: rows of device memory and of host memory by one
///                          kernel, after a small one that looks them up. With a plan and a batch in device
///                          memory each different row is fetched once
///   scatter, scatter_add   cached rows change in device memory alone, the others in host memory
///   gather_bags, step_bags
///   step                   of rows or of records. Weights and state of cached rows change in device memory
///                          alone; state in host memory is cached from the first step on, and belongs to the
///                          cache as the table does. So are counters of rows (step_count::per_row, catch_up).
///                          Weights and state of cached records lie together in device memory
///   make_state             takes a cached table, too

namespace ferry::optim::detail {

template <class Table, class Policy>
struct default_state<cached_table<Table, Policy>> : default_state<Table> {};

}  // namespace ferry::optim::detail

namespace ferry::detail {

/// Runs a verb on the table itself, with all changes written to it. The cached rows of a table that is not
/// const are read again afterwards. `operands`: see require_foreign. Returns the verb's result; later verbs
/// of any instance come after all of it.
template <class Exec, class Cached, class Run, class... Operands>
auto run_on_table(const Exec& exec, const char* verb, Cached& table, const Run& run,
                  const Operands&... operands) {
  require_cached_verb<Exec, chosen_policies<>>();
  row_cache& cache = table.core();
  const cache_use use(cache, verb);
  {
    launch_context<Exec> call(exec, verb);
    call.refuse_capture(
        "but this verb works on the backing table of a cached_table, whose cached rows a graph "
        "would not see; do it before the capture");
    flush_rows(call, cache);
    call.finish().drop();
  }
  const auto reload = [&] {
    if constexpr (std::is_const_v<Cached>) return;
    launch_context<Exec> call(exec, verb);
    reload_rows(call, cache);
    call.finish().drop();
  };
  try {
    require_foreign(verb, cache, operands...);
    if constexpr (std::is_void_v<decltype(run())>) {
      run();
      reload();
    } else {
      auto result = run();
      reload();
      return result;
    }
  } catch (...) {
    reload();  // a verb that a device error ended may have written
    throw;
  }
}

}  // namespace ferry::detail

namespace ferry {

/// copy from a cached table: all changes are written to host memory first. Arguments and errors are those of
/// copy. Of 8-bit rows the records are copied.
template <class Exec, class Table, class Policy, class To, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const cached_table<Table, Policy>& source, To&& target, Policies... policies) {
  return detail::run_on_table(
      exec, "copy", source,
      [&] { return copy(exec, detail::read_only(source.whole()), target, policies...); }, target);
}

/// copy to a cached table: the cached rows are read again afterwards. Arguments and errors are those of copy.
template <class Exec, class From, class Table, class Policy, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const From& source, cached_table<Table, Policy>& target, Policies... policies) {
  detail::require_writable<Table>();
  return detail::run_on_table(
      exec, "copy", target, [&] { return copy(exec, source, target.whole(), policies...); }, source);
}

/// copy from a cached table to another one.
template <class Exec, class Table, class Policy, class ToTable, class ToPolicy, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const cached_table<Table, Policy>& source, cached_table<ToTable, ToPolicy>& target,
    Policies... policies) {
  detail::require_writable<ToTable>();
  const auto rows = [&] { return detail::read_only(source.whole()); };
  if (&source.core() == &target.core())
    return detail::run_on_table(exec, "copy", target,
                                [&] { return copy(exec, rows(), target.whole(), policies...); });
  // Both caches are held until the copy is enqueued. In the order of their addresses: two threads may copy
  // crosswise.
  if (std::less<>{}(&source.core(), &target.core()))
    return detail::run_on_table(exec, "copy", source,
                                [&] { return copy(exec, rows(), target, policies...); });
  return detail::run_on_table(exec, "copy", target,
                              [&] { return copy(exec, source, target.whole(), policies...); });
}

/// clone of the backing table of a cache, in the memory space of that table or in Space.
template <class Space = void, class Exec, class Table, class Policy>
[[nodiscard("the copy is only to be had from the future that this returns")]] auto clone(
    const Exec& exec, const cached_table<Table, Policy>& table, std::string label = {}) {
  using space = std::conditional_t<std::is_void_v<Space>, typename Table::memory_space, Space>;
  return detail::run_on_table(exec, "clone", table,
                              [&] { return clone<space>(exec, table.whole(), std::move(label)); });
}

/// catch_up for a cached table: all changes are written to host memory first, and the cached rows of table
/// and state are read again afterwards. Arguments, bits and errors are those of catch_up.
template <class Exec, class Rule, class Table, class Policy, class StateRule, class StateType,
          MemorySpace StateSpace, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket catch_up(
    const Exec& exec, const Rule& rule, cached_table<Table, Policy>& table,
    optim::state<StateRule, StateType, StateSpace>& state, Policies... policies) {
  return detail::run_on_table(exec, "catch_up", table,
                              [&] { return catch_up(exec, rule, table.ref(), state, policies...); });
}

/// catch_up for cached optimizer records.
template <class Exec, class Rule, class RecordRule, class T, class StateType, MemorySpace Space, class Policy,
          class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket catch_up(
    const Exec& exec, const Rule& rule,
    cached_table<optim::records<RecordRule, T, StateType, Space>, Policy>& table, Policies...) {
  return detail::run_on_table(exec, "catch_up", table, [&] {
    auto state = table.record_state();
    return detail::catch_up_rows<detail::chosen_policies<Policies...>>(exec, rule, table.ref(), state);
  });
}

/// The gather of current rows under step_count::catch_up, from a cached table: all changes are written to
/// host memory first. Arguments, bits and errors are those of that gather.
template <class Exec, class Rule, class Table, class Policy, class StateRule, class StateType,
          MemorySpace StateSpace, class Indices, class Out, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Rule& rule, const cached_table<Table, Policy>& table,
    optim::state<StateRule, StateType, StateSpace>& state, const Indices& indices, Out&& out,
    Policies... policies) {
  return detail::run_on_table(
      exec, "gather", table,
      [&] { return gather(exec, rule, table.ref(), state, indices, out, policies...); }, indices, out);
}

/// The gather of current rows from cached optimizer records.
template <class Exec, class Rule, class RecordRule, class T, class StateType, MemorySpace Space, class Policy,
          class Indices, class Out, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const Rule& rule,
    const cached_table<optim::records<RecordRule, T, StateType, Space>, Policy>& table,
    const Indices& indices, Out&& out, Policies... policies) {
  return detail::run_on_table(
      exec, "gather", table,
      [&] {
        auto state = table.record_state();
        return detail::gather_current_rows(exec, rule, table.ref(), state, indices, out, policies...);
      },
      indices, out);
}

}  // namespace ferry

/// Initial values for the backing table of a cache, whose cached rows are read again afterwards. Arguments,
/// values and errors are those of the functions for any array.
namespace ferry::init {

/// Every element = 0.
template <class Exec, class Table, class Policy>
void zeros(const Exec& exec, cached_table<Table, Policy>& table) {
  detail::run_on_table(exec, "init", table, [&] { zeros(exec, table.whole()); });
}
/// Every element = the value of the same type or, for numbers, another number.
template <class Exec, class Table, class Policy, class Value>
void constant(const Exec& exec, cached_table<Table, Policy>& table, const Value& value) {
  detail::run_on_table(exec, "init", table, [&] { constant(exec, table.whole(), value); });
}
/// Uniform numbers; `options`: low, high, seed.
template <class Exec, class Table, class Policy, class... Options>
void uniform(const Exec& exec, cached_table<Table, Policy>& table, const Options&... options) {
  detail::run_on_table(exec, "init", table, [&] { uniform(exec, table.whole(), options...); });
}
/// Normal numbers; `options`: mean, standard deviation, seed.
template <class Exec, class Table, class Policy, class... Options>
void normal(const Exec& exec, cached_table<Table, Policy>& table, const Options&... options) {
  detail::run_on_table(exec, "init", table, [&] { normal(exec, table.whole(), options...); });
}
/// table(row, column) = function(row, column).
template <class Exec, class Table, class Policy, class Function>
void custom(const Exec& exec, cached_table<Table, Policy>& table, const Function& function) {
  detail::run_on_table(exec, "init", table, [&] { custom(exec, table.whole(), function); });
}

}  // namespace ferry::init
