// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "optim/step_kit.hpp"
#include "support/arrays.hpp"
#include "support/random.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

/// Training under step_count::catch_up next to dense training by plain loops.
namespace ferry_test {

inline constexpr std::size_t catch_up_rows = 17;
inline constexpr std::size_t catch_up_width = 37;

/// Few rows a step, so that some lag by many steps; lr changes on the way.
template <class T, class Space, class Rule, int Fields, class Path>
void catching_up_is_dense_training(Rule rule, Path path, double tolerance, int steps = 60) {
  CAPTURE(Rule::name, Space::name, path.name);
  auto random = generator(5);
  const exec_space exec;
  const auto start = values<T>(random, catch_up_rows * catch_up_width);
  auto table = make<Space>("weights", catch_up_rows, catch_up_width, start);
  auto state = ferry::optim::make_state(rule, table);
  plain_training<Rule, Fields> dense(rule, start, catch_up_width);
  ferry::tensor<T, ferry::device_space> snapshot("seen", catch_up_rows, catch_up_width);
  std::vector<std::int64_t> every(catch_up_rows);
  for (std::size_t row = 0; row < catch_up_rows; ++row) every[row] = static_cast<std::int64_t>(row);
  for (int step = 1; step <= steps; ++step) {
    if (step % 20 == 0) rule.lr *= 0.7;
    const auto batch = random_batch<T>(random, step % 9 == 0 ? 0 : 2,
                                       catch_up_rows - (step < steps / 2 ? 3 : 0), catch_up_width);
    ferry::step(exec, rule, table, state, batch.rows,
                make<ferry::device_space>("grads", batch.rows.size(), catch_up_width, batch.values), path,
                ferry::step_count::catch_up{})
        .wait();
    const auto sums = summed(batch, catch_up_width);
    for (std::size_t row = 0; row < catch_up_rows; ++row) {
      const auto named = sums.find(row);
      dense.step(rule, step, row,
                 named == sums.end() ? std::vector<double>(catch_up_width, 0.0) : named->second);
    }
    if (step % 15 != 0) continue;
    // The gather sees what dense training has, and changes nothing.
    const auto before = take(table);
    if constexpr (!std::is_same_v<Space, ferry::pageable_space>) {
      put(snapshot, std::vector<T>(catch_up_rows * catch_up_width, T(-77)));
      ferry::gather(exec, rule, table, state, every, snapshot).wait();
      CHECK(farthest_apart(take(snapshot), dense.weights) < tolerance);
      ferry::gather(exec, rule, table, state, ferry::make_plan(exec, every, catch_up_rows), snapshot).wait();
      CHECK(farthest_apart(take(snapshot), dense.weights) < tolerance);
    }
    CHECK(take(table) == before);
    if (step != 45) continue;
    ferry::catch_up(exec, rule, table, state).wait();
    CHECK(farthest_apart(take(table), dense.weights) < tolerance);
    for (const auto count : take(state.row_steps())) CHECK(count == 45);
  }
  ferry::catch_up(exec, rule, table, state).wait();
  CHECK(farthest_apart(take(table), dense.weights) < tolerance);
  for (int f = 0; f < Fields; ++f)
    CHECK(farthest_apart(take(state.field(f)), dense.state[static_cast<std::size_t>(f)]) < tolerance);
}

}  // namespace ferry_test
