// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/test.hpp"

namespace ferry_test::step_count_test {

// Training under step_count::catch_up next to dense training by plain loops.

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
      if constexpr (std::is_same_v<Rule, ferry::optim::adam>) {
        ferry::gather(exec, rule, table, state, ferry::make_plan(exec, every, catch_up_rows), snapshot)
            .wait();
        CHECK(farthest_apart(take(snapshot), dense.weights) < tolerance);
      }
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

// step_count::per_row and catch_up on every path, against plain loops in double: for catch_up those of dense training,
// where each step gives every row a gradient.

constexpr std::size_t rows = catch_up_rows;
constexpr std::size_t width = catch_up_width;

template <class Space, class Rule, int Fields, class Path>
void per_row_is_each_rows_own(Rule rule, Path path) {
  CAPTURE(Rule::name, Space::name, path.name);
  auto random = generator(3);
  const exec_space exec;
  const auto start = values<double>(random, rows * width);
  auto table = make<Space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  plain_training<Rule, Fields> expected(rule, start, width);
  std::vector<std::int64_t> counts(rows, 0);
  for (int step = 1; step <= 12; ++step) {
    if (step == 7) rule.lr *= 0.5;
    const auto batch = random_batch<double>(random, 9, rows, width);
    ferry::step(exec, rule, table, state, batch.rows,
                make<ferry::device_space>("grads", 9, width, batch.values), path,
                ferry::step_count::per_row{})
        .wait();
    for (const auto& [row, gradient] : summed(batch, width))
      expected.step(rule, ++counts[row], row, gradient);
  }
  CHECK(farthest_apart(take(table), expected.weights) < 1e-12);
  for (int f = 0; f < Fields; ++f)
    CHECK(farthest_apart(take(state.field(f)), expected.state[static_cast<std::size_t>(f)]) < 1e-12);
  const auto steps = take(state.row_steps());
  for (std::size_t row = 0; row < rows; ++row) CHECK(steps[row] == static_cast<std::uint32_t>(counts[row]));
  CHECK(state.steps() == 12);
}

TEMPLATE_TEST_CASE("rows that count for themselves", "[optim][step_count]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  for_each_path<TestType, ferry::device_space, work::changes>(
      [](auto path) { per_row_is_each_rows_own<TestType, ferry::optim::adam, 2>({.lr = 0.1}, path); });
  if constexpr (std::is_same_v<TestType, ferry::mapped_space>)
    per_row_is_each_rows_own<TestType, ferry::optim::adagrad, 1>({.lr = 0.1, .lr_decay = 0.1},
                                                                 ferry::path::direct{});
}

TEMPLATE_TEST_CASE("catching up is dense training, in every space and on every path", "[optim][step_count]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  for_each_path<TestType, ferry::device_space, work::changes>([](auto path) {
    catching_up_is_dense_training<double, TestType, ferry::optim::adam, 2>({.lr = 0.1}, path, 1e-12);
  });
}

TEST_CASE("steps that rows can't count in 32 bits are refused", "[optim][step_count]") {
  constexpr std::int64_t most = (std::int64_t{1} << 32) - 1;
  const exec_space exec;
  const ferry::optim::adam rule{.lr = 0.1};
  const std::vector<double> start(2, 1.0);
  const auto grads = make<ferry::device_space>("grads", 2, 1, std::vector<double>{0.5, -0.25});
  const auto refused_by = [&]<class Count>(Count count) {
    CAPTURE(Count::name);
    auto table = make<ferry::device_space>("weights", 2, 1, start);
    const auto step = [&](auto& state) {
      ferry::step(exec, rule, table, state, std::vector<std::int64_t>{0, 1}, grads, count).wait();
    };
    const auto refused = MessageMatches(ContainsSubstring("count to 4294967295"));
    // The last step that rows count is step `most`.
    auto state = ferry::optim::make_state(rule, table);
    state.set_steps(most - 1);
    step(state);
    CHECK(take(state.row_steps()) == std::vector<std::uint32_t>(2, std::uint32_t{0xffffffff}));
    const auto before = take(table);
    CHECK_FALSE(before == start);
    CHECK_THROWS_MATCHES(step(state), ferry::invalid_argument, refused);
    CHECK_THROWS_MATCHES(state.set_steps(most + 1), ferry::invalid_argument, refused);
    CHECK(take(table) == before);
    CHECK(state.steps() == most);
    // A state whose rows have not counted yet.
    auto late = ferry::optim::make_state(rule, table);
    late.set_steps(most);
    CHECK_THROWS_MATCHES(step(late), ferry::invalid_argument, refused);
    late.set_steps(5'000'000'000);
    CHECK_THROWS_MATCHES(step(late), ferry::invalid_argument, refused);
    CHECK(take(table) == before);
    CHECK(late.steps() == 5'000'000'000);
  };
  refused_by(ferry::step_count::per_row{});
  refused_by(ferry::step_count::catch_up{});

  // One number for all rows has 64 bits.
  auto table = make<ferry::device_space>("weights", 2, 1, start);
  auto state = ferry::optim::make_state(rule, table);
  plain_training<ferry::optim::adam, 2> expected(rule, start, 1);
  state.set_steps(most - 1);
  const auto gradients = take(grads);
  for (std::int64_t s = most; s < most + 4; ++s) {
    ferry::step(exec, rule, table, state, std::vector<std::int64_t>{0, 1}, grads).wait();
    for (std::size_t row = 0; row < 2; ++row)
      expected.step(rule, s, row, std::vector<double>{gradients[row]});
  }
  CHECK(farthest_apart(take(table), expected.weights) < 1e-12);
}

TEST_CASE("rows that missed very many steps", "[optim][step_count]") {
  // Long enough for weights to come to rest and for the power that stands for the rest of the steps.
  const exec_space exec;
  auto random = generator(7);
  const auto many = [&]<class Rule, int Fields>(const Rule& rule, std::integral_constant<int, Fields>) {
    CAPTURE(Rule::name);
    const auto start = values<double>(random, 3 * width);
    auto table = make<ferry::device_space>("weights", 3, width, start);
    auto state = ferry::optim::make_state(rule, table);
    plain_training<Rule, Fields> dense(rule, start, width);
    const auto step = [&](std::int64_t number, std::int64_t row) {
      const auto gradient = values<double>(random, width);
      ferry::step(exec, rule, table, state, std::vector<std::int64_t>{row},
                  make<ferry::device_space>("grads", 1, width, gradient), ferry::step_count::catch_up{})
          .wait();
      for (std::int64_t r = 0; r < 3; ++r)
        dense.step(rule, number, static_cast<std::size_t>(r),
                   r == row ? gradient : std::vector<double>(width, 0.0));
    };
    for (std::int64_t s = 1; s <= 3; ++s) step(s, s % 3);
    for (std::int64_t s = 4; s <= 3000; ++s) step(s, 1);
    step(3001, 0);
    ferry::catch_up(exec, rule, table, state).wait();
    CHECK(farthest_apart(take(table), dense.weights) < 1e-11);
    for (int f = 0; f < Fields; ++f)
      CHECK(farthest_apart(take(state.field(f)), dense.state[static_cast<std::size_t>(f)]) < 1e-11);
  };
  many(ferry::optim::adam{.lr = 0.01}, std::integral_constant<int, 2>{});
  many(ferry::optim::sgd{.lr = 0.01, .momentum = 0.9}, std::integral_constant<int, 1>{});
}

TEST_CASE("counters are made once, by one policy, and steps that fail are taken back",
          "[optim][step_count]") {
  const exec_space exec;
  auto random = generator(9);
  auto table = make<ferry::mapped_space>("weights", rows, width, values<float>(random, rows * width));
  const ferry::optim::adam rule{.lr = 0.1};
  auto state = ferry::optim::make_state(rule, table, ferry::step_count::catch_up{});
  CHECK(state.row_steps().rows() == rows);
  const auto grads = make<ferry::device_space>("grads", 2, width, values<float>(random, 2 * width));
  const std::vector<std::int64_t> fine{1, 2}, bad{1, 99};
  const ferry::step_count::catch_up policy;
  ferry::step(exec, rule, table, state, fine, grads, policy).wait();
  const auto before = take(table);
  CHECK_THROWS_AS(ferry::step(exec, rule, table, state, bad, grads, policy).wait(), ferry::out_of_range);
  CHECK(state.steps() == 1);
  CHECK(take(table) == before);
  CHECK(take(state.row_steps())[1] == 1);
  CHECK_THROWS_MATCHES(
      ferry::step(exec, rule, table, state, fine, grads), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("'weights'") && ContainsSubstring("step_count::catch_up") &&
                     ContainsSubstring("step_count::global")));
  CHECK_THROWS_AS(ferry::step(exec, rule, table, state, fine, grads, ferry::step_count::per_row{}),
                  ferry::invalid_argument);
  // A state that took steps before it counts rows: they are all as far as it is.
  auto late = ferry::optim::make_state(rule, table);
  ferry::step(exec, rule, table, late, fine, grads).wait();
  CHECK(late.row_steps().size() == 0);
  ferry::step(exec, rule, table, late, fine, grads, policy).wait();
  CHECK(take(late.row_steps())[0] == 1);
  CHECK(take(late.row_steps())[1] == 2);
}

TEST_CASE("rows of a batch with a bad index do not count", "[optim][step_count][bounds]") {
  const exec_space exec;
  const ferry::optim::adam rule{.lr = 0.1};
  const auto refused_by = [&]<class Count>(Count count) {
    CAPTURE(Count::name);
    const std::vector<float> start(4 * 8, 1.0f);
    auto table = make<ferry::device_space>("weights", 4, 8, start);
    auto state = ferry::optim::make_state(rule, table);
    const auto grads = make<ferry::device_space>("grads", 3, 8, std::vector<float>(3 * 8, 0.5f));
    const auto step_of = [&](const std::vector<std::int64_t>& ids) {
      const auto named = make<ferry::device_space>("ids", ids.size(), 1, ids);
      ferry::step(exec, rule, table, state, named, grads, count, ferry::duplicates::assume_unique{}).wait();
    };
    step_of({3, 1, 2});
    const auto weights = take(table);
    for (int time = 0; time < 2; ++time) CHECK_THROWS_AS(step_of({0, 99, 2}), ferry::out_of_range);
    CHECK(take(table) == weights);
    CHECK(take(state.row_steps()) == std::vector<std::uint32_t>{0, 1, 1, 1});
  };
  refused_by(ferry::step_count::per_row{});
  refused_by(ferry::step_count::catch_up{});
}

/// Adam without a memory of squares, by a plain loop: the newest gradient is the second moment.
template <class Rule, class Divisor>
void late_rows_without_second_moment(const Rule& rule, const Divisor& divisor) {
  constexpr std::size_t count = 3, columns = 2;
  constexpr int steps = 40;
  const exec_space exec;
  auto table =
      make<ferry::mapped_space>("weights", count, columns, std::vector<double>(count * columns, 1.0));
  auto state = ferry::optim::make_state(rule, table, ferry::step_count::catch_up{});
  std::vector<double> weights(count * columns, 1.0), moments(count * columns, 0.0);
  for (int step = 1; step <= steps; ++step) {
    std::vector<std::int32_t> named;
    std::vector<double> gradients;
    for (std::size_t row = 0; row < count; ++row) {
      const bool is_named = step % static_cast<int>(1 + 4 * row) == 0;
      if (is_named) named.push_back(static_cast<std::int32_t>(row));
      for (std::size_t c = 0; c < columns; ++c) {
        const double gradient =
            is_named ? 0.25 * static_cast<double>((step * 7 + static_cast<int>(c)) % 5) - 0.6 : 0.0;
        if (is_named) gradients.push_back(gradient);
        double& moment = moments[row * columns + c];
        moment = rule.betas[0] * moment + (1.0 - rule.betas[0]) * gradient;
        weights[row * columns + c] -=
            rule.lr * moment / (1.0 - std::pow(rule.betas[0], step)) / divisor(std::fabs(gradient));
      }
    }
    const auto grads = make<ferry::mapped_space>("grads", named.size(), columns, gradients);
    ferry::step(exec, rule, table, state, named, grads, ferry::step_count::catch_up{}, ferry::path::direct{})
        .wait();
  }
  ferry::catch_up(exec, rule, table, state).wait();
  CHECK(farthest_apart(take(table), weights) < 1e-12);
  CHECK(farthest_apart(take(state.field(0)), moments) < 1e-12);
}

TEST_CASE("late rows with a second decay rate of 0 are those of dense training", "[optim][step_count]") {
  constexpr double eps = 1e-2;
  const auto by_sum = [](double gradient) { return gradient + eps; };
  late_rows_without_second_moment(ferry::optim::adam{.lr = 0.01, .betas = {0.9, 0.0}, .eps = eps}, by_sum);
  late_rows_without_second_moment(
      ferry::optim::adamw{.lr = 0.01, .betas = {0.9, 0.0}, .eps = eps, .weight_decay = 0.0}, by_sum);
  late_rows_without_second_moment(ferry::optim::adamax{.lr = 0.01, .betas = {0.9, 0.0}, .eps = eps}, by_sum);
}

// step_count::catch_up for every rule that updates element by element.

TEST_CASE("catching up is dense training, for every rule", "[optim][step_count]") {
  using space = ferry::mapped_space;
  const ferry::path::direct path;
  const auto check = [&]<class Rule, int Fields>(const Rule& rule, std::integral_constant<int, Fields>) {
    catching_up_is_dense_training<double, space, Rule, Fields>(rule, path, 1e-12);
    // In float one rule of each number of fields.
    if constexpr (std::is_same_v<Rule, ferry::optim::sgd> || std::is_same_v<Rule, ferry::optim::adam>)
      catching_up_is_dense_training<float, space, Rule, Fields>(rule, path, 2e-5);
  };
  using namespace ferry::optim;
  const std::integral_constant<int, 0> none;
  const std::integral_constant<int, 1> single;
  const std::integral_constant<int, 2> two;
  const std::integral_constant<int, 3> three;
  check(sgd{.lr = 0.1, .weight_decay = 0.01}, none);
  check(sgd{.lr = 0.1, .momentum = 0.9}, single);
  check(sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}, single);
  check(adagrad{.lr = 0.1, .lr_decay = 0.1}, single);
  check(adagrad{.lr = 0.1, .weight_decay = 0.1}, single);
  check(adam{.lr = 0.1, .amsgrad = true}, three);
  check(adam{.lr = 0.1, .weight_decay = 0.1}, two);
  check(adamw{.lr = 0.1, .weight_decay = 0.1}, two);
  check(adamw{.lr = 0.1, .weight_decay = 0.0}, two);
  check(sparse_adam{.lr = 0.1}, two);
  check(nadam{.lr = 0.1}, two);
  check(adadelta{.lr = 1.0}, two);
  check(adamax{.lr = 0.1}, two);
  check(rmsprop{.lr = 0.01}, single);
  check(rmsprop{.lr = 0.01, .momentum = 0.9, .centered = true}, three);
  check(rmsprop{.lr = 0.01, .centered = true}, two);
  check(rprop{.lr = 0.01}, two);
  check(asgd{.lr = 0.1, .lambd = 0.01, .t0 = 5.0}, single);
  check(ftrl{.lr = 0.1, .l1 = 0.1}, two);
}

}  // namespace ferry_test::step_count_test
