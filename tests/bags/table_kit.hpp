// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bags/bags.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>

/// Steps on bags of several tables, together and one by one.
namespace ferry_test {

/// Tables of several widths, with bags and gradients of a batch.
template <class T, class Index = std::int64_t, class V = float>
struct table_batch {
  std::vector<std::size_t> widths, rows;
  std::size_t batch, width = 0;
  std::vector<std::vector<T>> values;
  std::vector<std::size_t> offsets;
  std::vector<Index> ids;
  std::vector<V> grads;
  std::vector<float> weights;

  /// `rows`: of each table; random if there are none. Tables without rows have empty bags.
  table_batch(std::mt19937_64& random, std::vector<std::size_t> table_widths, std::size_t bags,
              std::vector<std::size_t> table_rows = {}, std::size_t longest = 20)
      : widths(std::move(table_widths)), rows(std::move(table_rows)), batch(bags) {
    const bool any = rows.empty();
    offsets.push_back(0);
    for (std::size_t t = 0; t < widths.size(); ++t) {
      if (any) rows.push_back(2 + random() % 60);
      values.push_back(uneven_values<T>(random, rows[t] * widths[t]));
      width += widths[t];
      const auto table_offsets = bag_offsets(random, batch, longest);
      for (std::size_t b = 0; b < batch; ++b) {
        const std::size_t length = rows[t] == 0 ? 0 : table_offsets[b + 1] - table_offsets[b];
        offsets.push_back(offsets.back() + length);
        for (std::size_t k = 0; k < length; ++k) ids.push_back(static_cast<Index>(random() % rows[t]));
      }
    }
    grads = uneven_values<V>(random, batch * width);
    weights = uneven_values<float>(random, ids.size());
  }

  [[nodiscard]] std::size_t column(std::size_t table) const {
    std::size_t sum = 0;
    for (std::size_t t = 0; t < table; ++t) sum += widths[t];
    return sum;
  }
  /// The part of a list with an entry for each position that is a table's.
  template <class List>
  [[nodiscard]] List part(const List& list, std::size_t table) const {
    return List(list.begin() + static_cast<std::ptrdiff_t>(offsets[table * batch]),
                list.begin() + static_cast<std::ptrdiff_t>(offsets[(table + 1) * batch]));
  }
  [[nodiscard]] std::vector<std::int64_t> offsets_of(std::size_t table) const {
    std::vector<std::int64_t> list;
    for (std::size_t b = 0; b <= batch; ++b)
      list.push_back(static_cast<std::int64_t>(offsets[table * batch + b] - offsets[table * batch]));
    return list;
  }
  [[nodiscard]] std::vector<V> grads_of(std::size_t table) const {
    std::vector<V> list;
    for (std::size_t b = 0; b < batch; ++b)
      for (std::size_t c = 0; c < widths[table]; ++c) list.push_back(grads[b * width + column(table) + c]);
    return list;
  }
};

/// The bits of tables and states after a step.
template <class T, class State>
struct stepped_tables {
  std::vector<std::vector<T>> tables;
  std::vector<std::vector<State>> fields;
  std::vector<std::vector<std::uint32_t>> row_steps;
  std::vector<std::int64_t> steps;
};

template <class T, class State, class Tables, class States>
stepped_tables<T, State> taken(const Tables& tables, States& states) {
  stepped_tables<T, State> result;
  for (const auto& table : tables) result.tables.push_back(take(table));
  for (auto& state : states) {
    for (int f = 0; f < state.fields(); ++f) result.fields.push_back(take(state.field(f)));
    for (int f = 0; f < std::remove_cvref_t<decltype(state)>::row_fields; ++f)
      result.fields.push_back(take(state.row_field_at(f)));
    result.row_steps.push_back(take(state.row_steps()));
    result.steps.push_back(state.steps());
  }
  return result;
}

template <class Space, class StateSpace, class Rule, class T, class Index, class V>
auto tables_and_states(const Rule& rule, const table_batch<T, Index, V>& input) {
  std::vector<ferry::tensor<T, Space>> tables;
  using state_type = decltype(ferry::optim::make_state<StateSpace>(rule, tables.front()));
  std::vector<state_type> states;
  for (std::size_t t = 0; t < input.widths.size(); ++t) {
    tables.push_back(
        make<Space>(("table" + std::to_string(t)).c_str(), input.rows[t], input.widths[t], input.values[t]));
    states.push_back(ferry::optim::make_state<StateSpace>(rule, tables.back()));
    states.back().set_seed(17 + t);
  }
  return std::pair(std::move(tables), std::move(states));
}

/// Two steps of all tables in one call each.
template <class Space = ferry::device_space, class StateSpace = Space, class Rule, class T, class Index,
          class V, class... More>
auto stepped_together(const Rule& rule, const table_batch<T, Index, V>& input, const More&... more) {
  const exec_space exec;
  auto [tables, states] = tables_and_states<Space, StateSpace>(rule, input);
  const auto grads = make<ferry::device_space>("grads", input.batch, input.width, input.grads);
  for (int s = 0; s < 2; ++s)
    ferry::step_bags(exec, rule, ferry::for_each_table(tables), states, input.ids, input.offsets, grads,
                     more...)
        .wait();
  using state_type = typename decltype(states)::value_type;
  return taken<T, typename state_type::value_type>(tables, states);
}

/// Two steps of each table by itself. A list of weights is cut as the indices are.
template <class Space = ferry::device_space, class StateSpace = Space, class Rule, class T, class Index,
          class V, class... More>
auto stepped_one_by_one(const Rule& rule, const table_batch<T, Index, V>& input, const More&... more) {
  const exec_space exec;
  auto [tables, states] = tables_and_states<Space, StateSpace>(rule, input);
  [[maybe_unused]] const auto part = [&]<class Argument>(const Argument& argument, std::size_t t) {
    if constexpr (std::is_same_v<Argument, std::vector<float>>)
      return input.part(argument, t);
    else
      return argument;
  };
  for (int s = 0; s < 2; ++s)
    for (std::size_t t = 0; t < tables.size(); ++t)
      ferry::step_bags(exec, rule, tables[t], states[t], input.part(input.ids, t), input.offsets_of(t),
                       make<ferry::device_space>("grads", input.batch, input.widths[t], input.grads_of(t)),
                       part(more, t)...)
          .wait();
  using state_type = typename decltype(states)::value_type;
  return taken<T, typename state_type::value_type>(tables, states);
}

template <class T, class State>
void check_same(const stepped_tables<T, State>& expected, const stepped_tables<T, State>& result) {
  REQUIRE(expected.tables.size() == result.tables.size());
  for (std::size_t t = 0; t < expected.tables.size(); ++t) {
    CAPTURE(t);
    CHECK(same_bits(expected.tables[t], result.tables[t]));
    CHECK(expected.row_steps[t] == result.row_steps[t]);
  }
  REQUIRE(expected.fields.size() == result.fields.size());
  for (std::size_t f = 0; f < expected.fields.size(); ++f)
    CHECK(same_bits(expected.fields[f], result.fields[f]));
  CHECK(expected.steps == result.steps);
}

}  // namespace ferry_test
