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
  std::vector<ferry::row_plan> plans;
  for (int s = 0; s < sets.count(); ++s) plans.push_back(ferry::make_plan(run.exec(), sets[s], table.rows()));
  const auto plan = [&plans](int call) -> const ferry::row_plan& {
    return plans[static_cast<std::size_t>(call) % plans.size()];
  };

  const auto time = [&](const std::string& variant, const auto& choose, auto... policies) {
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
        return ferry::step(run.exec(), rule, table, state, choose(call), grads, policies...);
      });
    }
    ferry::init::custom(run.exec(), table, element_value{width});
    auto state = ferry::optim::make_state(rule, table);
    ferry::step(run.exec(), rule, table, state, choose(1), grads, policies...).wait();
    std::int64_t wrong = count_of(run.exec(), "ferry_bench::check", n * width,
                                  wrong_stepped<Move>{table.data(), sets[1].data(), element_value{width},
                                                      element_value{width, gradient_salt}, move});
    const auto changed = count_of(run.exec(), "ferry_bench::check", static_cast<std::int64_t>(table.size()),
                                  changed_elements{table.data(), element_value{width}});
    if (changed > n * width) wrong += changed - n * width;
    conclude(run, made, wrong);
  };
  const auto by_index = [&sets](int call) -> const row_indices& { return sets[call]; };
  time("plan_inside", by_index);
  time("plan_ready", plan);
  time("unique", by_index, unique{});
  time("unique_unchecked", by_index, unique{}, ferry::bounds::unchecked{});
}

}  // namespace ferry_bench
