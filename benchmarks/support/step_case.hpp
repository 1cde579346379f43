#pragma once

#include "measure.hpp"
#include "tables.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace ferry_bench {

/// The gradients hold their own formula.
constexpr std::uint64_t gradient_salt = 2;

/// SGD's step is the same at all times.
struct first_sgd_step {
  double lr;
  KOKKOS_FUNCTION double operator()(double gradient) const { return -lr * gradient; }
};

/// Elements of the named rows that differ from `w + move(g)`, the rule's first step from a state of zeros, by
/// more than float rounding. `Move` is that first step in double.
template <class Move>
struct wrong_stepped {
  const float* table;
  const std::int64_t* rows;
  element_value before, gradient;
  Move move;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t position = i / before.width;
    const std::int64_t column = i % before.width;
    const std::int64_t row = rows[position];
    const double w = static_cast<double>(before(row, column));
    const double expected = w + move(static_cast<double>(gradient(position, column)));
    const double difference = static_cast<double>(table[row * before.width + column]) - expected;
    if (!(difference < 1e-6 && difference > -1e-6)) ++wrong;
  }
};

/// Elements that the rule's first step by `which` (indices or plan of `rows`, which are distinct) leaves wrong, in the
/// rows that it names and in the others.
template <class Table, class Rule, class Move, class Which, class... Policies>
std::int64_t wrong_after_step(const session& run, Table& table, const Rule& rule, const Move& move,
                              const Which& which, const row_indices& rows, const batch_tensor& grads,
                              Policies... policies) {
  const element_value before{static_cast<std::int64_t>(table.width())};
  const element_value gradient{before.width, gradient_salt};
  const auto moved = static_cast<std::int64_t>(grads.size());
  ferry::init::custom(run.exec(), table, before);
  auto state = ferry::optim::make_state(rule, table);
  ferry::step(run.exec(), rule, table, state, which, grads, policies...).wait();
  const auto wrong = count_of(run.exec(), "ferry_bench::check", moved,
                              wrong_stepped<Move>{table.data(), rows.data(), before, gradient, move});
  const auto changed = count_of(run.exec(), "ferry_bench::check", static_cast<std::int64_t>(table.size()),
                                changed_elements{table.data(), before});
  return changed > moved ? wrong + changed - moved : wrong;
}

/// A step on distinct rows of a device table: with the indices sorted inside the call, with a plan made
/// beforehand, and with the promise that no row comes twice. `state_arrays` counts the rule's arrays of
/// state.
template <class Rule, class Move>
void time_steps(session& run, const std::string& name, const Rule& rule, int state_arrays, const Move& move) {
  using unique = ferry::duplicates::assume_unique;
  constexpr int burst = 8;
  const auto n = run.chosen().step_n;
  const auto width = run.chosen().width;
  ferry::tensor<float, ferry::device_space> table("weights", run.chosen().step_rows, width);
  batch_tensor grads("grads", n, width);
  ferry::init::custom(run.exec(), grads, element_value{width, gradient_salt});
  const auto sets = index_sets::make<distinct_row>(run, n, table.rows());
  const plan_sets plans(run, sets, table.rows());

  const auto time = [&](const std::string& variant, const auto& which, auto... policies) {
    ferry::init::custom(run.exec(), table, element_value{width});
    figure made;
    made.name = name + "." + variant;
    made.setting = {
        {"rows", run.chosen().step_rows}, {"n", n}, {"width", width}, {"burst", std::int64_t{burst}}};
    made.bytes = static_cast<double>(n * width) * 4 * (2 * (1 + state_arrays) + 1);
    made.counts = "read + write";
    made.ceiling = run.ceiling("ceiling.device_copy");
    {
      auto state = ferry::optim::make_state(rule, table);
      made.time = measure(run, burst, [&](int call) {
        return ferry::step(run.exec(), rule, table, state, which[call], grads, policies...);
      });
    }
    conclude(run, made, wrong_after_step(run, table, rule, move, which[1], sets[1], grads, policies...));
  };
  time("plan_inside", sets);
  time("plan_ready", plans);
  time("unique", sets, unique{});
  time("unique_unchecked", sets, unique{}, ferry::bounds::unchecked{});
}

}  // namespace ferry_bench
