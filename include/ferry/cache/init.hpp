// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/check_cached.hpp>
#include <ferry/rows/init.hpp>

/// Initial values for the backing table of a cache, whose cached rows are read again afterwards. Arguments,
/// values and errors are those of the functions for any array.
namespace ferry::init {

/// Every element = 0.
template <class Exec, class Table, class Policy>
void zeros(const Exec& exec, cached_table<Table, Policy>& table) {
  ferry::detail::run_on_table(exec, "init", table.core(), true, [&] { zeros(exec, table.whole()); });
}
/// Every element = the value of the same type or, for numbers, another number.
template <class Exec, class Table, class Policy, class Value>
void constant(const Exec& exec, cached_table<Table, Policy>& table, const Value& value) {
  ferry::detail::run_on_table(exec, "init", table.core(), true,
                              [&] { constant(exec, table.whole(), value); });
}
/// Uniform numbers; `options`: low, high, seed.
template <class Exec, class Table, class Policy, class... Options>
void uniform(const Exec& exec, cached_table<Table, Policy>& table, const Options&... options) {
  ferry::detail::run_on_table(exec, "init", table.core(), true,
                              [&] { uniform(exec, table.whole(), options...); });
}
/// Normal numbers; `options`: mean, standard deviation, seed.
template <class Exec, class Table, class Policy, class... Options>
void normal(const Exec& exec, cached_table<Table, Policy>& table, const Options&... options) {
  ferry::detail::run_on_table(exec, "init", table.core(), true,
                              [&] { normal(exec, table.whole(), options...); });
}
/// table(row, column) = function(row, column).
template <class Exec, class Table, class Policy, class Function>
void custom(const Exec& exec, cached_table<Table, Policy>& table, const Function& function) {
  ferry::detail::run_on_table(exec, "init", table.core(), true,
                              [&] { custom(exec, table.whole(), function); });
}

}  // namespace ferry::init
