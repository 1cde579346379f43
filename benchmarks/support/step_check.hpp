// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.hpp"
#include "formulas.hpp"
#include "session.hpp"
#include "tables.hpp"

#include <ferry/ferry.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

/// The first step of each rule once more, in double, by kernels that share no code with ferry's.
namespace ferry_bench {

/// The gradients' own formula: of both signs, multiples of 2^-24.
struct gradient_value {
  std::int64_t width;

  KOKKOS_FUNCTION float operator()(std::int64_t position, std::int64_t column) const {
    return element_value{width, 2}(position, column) - 0.5F;
  }
};

/// The rows that a batch names, each once, with the positions that name it: begins[r] to begins[r + 1] - 1 of
/// `positions` for rows[r]. Worked out on the host.
struct named_rows {
  row_indices rows, begins, positions;

  named_rows(const session& run, const row_indices& batch) {
    const auto listed = to_host(batch);
    const auto row_at = [&listed](std::int64_t p) { return listed[static_cast<std::size_t>(p)]; };
    std::vector<std::int64_t> order(listed.size()), named, starts;
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t left, std::int64_t right) { return row_at(left) < row_at(right); });
    for (std::size_t i = 0; i < order.size(); ++i)
      if (named.empty() || named.back() != row_at(order[i])) {
        named.push_back(row_at(order[i]));
        starts.push_back(static_cast<std::int64_t>(i));
      }
    starts.push_back(static_cast<std::int64_t>(order.size()));
    rows = on_device(run, "rows", named);
    begins = on_device(run, "begins", starts);
    positions = on_device(run, "positions", order);
  }
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(rows.size()); }

 private:
  static row_indices on_device(const session& run, const char* name,
                               const std::vector<std::int64_t>& values) {
    row_indices result(name, values.size());
    ferry::copy(run.exec(), values, result).wait();
    return result;
  }
};

/// Sum of the gradients of a row, which moves it.
struct summed_gradient {
  gradient_value gradient;
  const std::int64_t* positions;
  std::int64_t begin, end;

  KOKKOS_FUNCTION double operator()(std::int64_t column) const {
    double sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += static_cast<double>(gradient(positions[i], column));
    return sum;
  }
};

/// SGD's first step, with momentum or without.
struct first_sgd_step {
  double lr;
  KOKKOS_FUNCTION double operator()(double weight, double gradient) const { return weight - lr * gradient; }
};

/// The first step of the rules that divide by a root of squares, or by a maximum: what undoes the start from zero leaves
/// the gradient itself below. The cases take a large eps, because a step that were almost lr for any gradient
/// would hide a wrong one.
struct first_normed_step {
  double lr, eps;
  double keep = 1.0;
  KOKKOS_FUNCTION double operator()(double weight, double gradient) const {
    return keep * weight - lr * gradient / (Kokkos::abs(gradient) + eps);
  }
};

/// Elements of the named rows that are not what the rule's first step makes of them, up to float rounding. `First` is
/// that step in double: (weight, gradient), or (weight, summed_gradient, column) where it looks at the whole row.
template <class First>
struct wrong_stepped {
  const float* table;
  const std::int64_t* rows;
  const std::int64_t* begins;
  const std::int64_t* positions;
  element_value before;
  First first;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t named = i / before.width;
    const std::int64_t column = i % before.width;
    const summed_gradient sum{{before.width}, positions, begins[named], begins[named + 1]};
    const auto weight = static_cast<double>(before(rows[named], column));
    double expected = 0;
    if constexpr (std::is_invocable_v<First, double, double>)
      expected = first(weight, sum(column));
    else
      expected = first(weight, sum, column);
    const double difference = static_cast<double>(table[rows[named] * before.width + column]) - expected;
    // Each position rounds the sum once more.
    const double tolerance = 1e-6 + 3e-8 * static_cast<double>(sum.end - sum.begin);
    if (!(difference < tolerance && difference > -tolerance)) ++wrong;
  }
};

/// Elements of the named rows that are no longer the formula's.
struct changed_in_rows {
  const float* table;
  const std::int64_t* rows;
  element_value expected;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& changed) const {
    const std::int64_t row = rows[i / expected.width];
    const std::int64_t column = i % expected.width;
    if (table[row * expected.width + column] != expected(row, column)) ++changed;
  }
};

/// Elements of a dense table that the rule's first step leaves wrong, in the rows named and in the others, which have to
/// be as they were.
template <class First>
std::int64_t wrong_in_table(const session& run, const float* table, std::int64_t elements,
                            const element_value& before, const First& first, const named_rows& named) {
  const auto count = [&](std::int64_t field, const auto& check) {
    return count_of(run.exec(), "ferry_bench::check", field, check);
  };
  const std::int64_t moved = named.count() * before.width;
  const auto changed = count(elements, changed_elements{table, before});
  return count(moved, wrong_stepped<First>{table, named.rows.data(), named.begins.data(),
                                           named.positions.data(), before, first}) +
         changed - count(moved, changed_in_rows{table, named.rows.data(), before});
}

/// Such a check after a step on a table of its own state by `which`: indices or plan of the rows named.
template <class Table, class Rule, class First, class Which, class... Policies>
std::int64_t wrong_after_step(const session& run, Table& table, const Rule& rule, const First& first,
                              const Which& rows, const named_rows& named, const batch_tensor& grads,
                              Policies... policies) {
  const element_value before{static_cast<std::int64_t>(table.width())};
  ferry::init::custom(run.exec(), table, before);
  auto state = ferry::optim::make_state(rule, table);
  ferry::step(run.exec(), rule, table, state, rows, grads, policies...).wait();
  return wrong_in_table(run, table.data(), static_cast<std::int64_t>(table.size()), before, first, named);
}

}  // namespace ferry_bench
