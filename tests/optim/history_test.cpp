// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/test.hpp"

#include <boost/hana/tuple.hpp>

#include <barrier>

namespace ferry_test::history_test {

// The memory of step_count::catch_up for the steps that a row missed: options that change, steps without rows, states that
// are restored. Against dense training by plain loops.

constexpr std::size_t rows = 3;
constexpr std::size_t width = 5;
const ferry::step_count::catch_up policy;

/// `rule_at(step)` says by which options each step goes, `row_at(step)` which row it names, none if negative.
template <class Rule, int Fields>
void follow_schedule(std::int64_t steps, const std::function<Rule(std::int64_t)>& rule_at,
                     const std::function<std::int64_t(std::int64_t)>& row_at,
                     std::integral_constant<int, Fields>) {
  CAPTURE(Rule::name);
  const exec_space exec;
  auto random = generator(41);
  const auto start = values<double>(random, rows * width);
  auto table = make<ferry::device_space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule_at(1), table);
  plain_training<Rule, Fields> dense(rule_at(1), start, width);
  const std::vector<std::int64_t> every{0, 1, 2};
  ferry::tensor<double, ferry::device_space> snapshot("seen", rows, width);
  for (std::int64_t s = 1; s <= steps; ++s) {
    const Rule rule = rule_at(s);
    std::vector<std::int64_t> named;
    if (row_at(s) >= 0) named.push_back(row_at(s));
    const auto gradient = values<double>(random, named.size() * width);
    ferry::step(exec, rule, table, state, named,
                make<ferry::device_space>("grads", named.size(), width, gradient), policy,
                ferry::path::direct{})
        .wait();
    for (std::size_t row = 0; row < rows; ++row)
      dense.step(rule, s, row,
                 static_cast<std::int64_t>(row) == row_at(s) ? gradient : std::vector<double>(width, 0.0));
    put(snapshot, std::vector<double>(rows * width, -77.0));
    ferry::gather(exec, rule, table, state, every, snapshot).wait();
    CHECK(farthest_apart(take(snapshot), dense.weights) < 1e-12);
  }
  ferry::catch_up(exec, rule_at(steps), table, state).wait();
  CHECK(farthest_apart(take(table), dense.weights) < 1e-12);
  for (int f = 0; f < Fields; ++f)
    CHECK(farthest_apart(take(state.field(f)), dense.state[static_cast<std::size_t>(f)]) < 1e-12);
}

std::int64_t first_and_last(std::int64_t step) {
  return step == 1 || step == 60 ? 0 : step % 7 == 0 ? 1 : -1;
}

TEST_CASE("rows at rest wake where options change", "[optim][step_count]") {
  using namespace ferry::optim;
  const std::integral_constant<int, 0> none;
  const std::integral_constant<int, 1> single;
  const std::integral_constant<int, 2> two;
  const auto decays = [](std::int64_t s) { return s > 20 && s < 50 ? 0.1 : 0.0; };
  const auto rate = [](std::int64_t s) { return s % 5 == 2 ? 0.0 : 0.1; };
  follow_schedule<adagrad>(
      60, [&](std::int64_t s) { return adagrad{.lr = 0.1, .weight_decay = decays(s)}; }, first_and_last,
      single);
  follow_schedule<adadelta>(
      60, [&](std::int64_t s) { return adadelta{.weight_decay = decays(s)}; }, first_and_last, two);
  follow_schedule<rmsprop>(
      60, [&](std::int64_t s) { return rmsprop{.weight_decay = decays(s)}; }, first_and_last, single);
  follow_schedule<sgd>(
      60, [&](std::int64_t s) { return sgd{.lr = rate(s), .weight_decay = decays(s)}; }, first_and_last,
      none);
  follow_schedule<sgd>(
      60, [&](std::int64_t s) { return sgd{.lr = rate(s), .momentum = 0.9}; }, first_and_last, single);
  follow_schedule<adam>(
      60, [&](std::int64_t s) { return adam{.lr = rate(s), .weight_decay = decays(s)}; }, first_and_last,
      two);
  follow_schedule<adam>(
      60, [&](std::int64_t s) { return adam{.lr = rate(s)}; }, first_and_last, two);
  follow_schedule<nadam>(
      60, [&](std::int64_t s) { return nadam{.lr = rate(s)}; }, first_and_last, two);
}

TEST_CASE("steps without rows count, and their options hold", "[optim][step_count]") {
  using namespace ferry::optim;
  const auto rate = [](std::int64_t s) { return 0.1 / static_cast<double>(s); };
  follow_schedule<sgd>(
      9, [&](std::int64_t s) { return sgd{.lr = rate(s), .momentum = 0.9}; },
      [](std::int64_t s) -> std::int64_t { return s % 3 == 0 ? 1 : -1; }, std::integral_constant<int, 1>{});
  follow_schedule<adam>(
      4, [&](std::int64_t s) { return adam{.lr = rate(s)}; }, [](std::int64_t) { return -1; },
      std::integral_constant<int, 2>{});
}

TEST_CASE("a restored state goes on where it was", "[optim][step_count]") {
  const exec_space exec;
  auto random = generator(43);
  const ferry::optim::adam rule{.lr = 0.1};
  const auto start = values<double>(random, rows * width);
  for (const bool counters_first : {false, true}) {
    auto table = make<ferry::device_space>("weights", rows, width, start);
    auto state = counters_first ? ferry::optim::make_state(rule, table, policy)
                                : ferry::optim::make_state(rule, table);
    plain_training<ferry::optim::adam, 2> dense(rule, start, width);
    state.set_steps(1000);
    for (std::int64_t s = 1001; s <= 1004; ++s) {
      const std::int64_t named = s % 2;
      const auto gradient = values<double>(random, width);
      ferry::step(exec, rule, table, state, std::vector<std::int64_t>{named},
                  make<ferry::device_space>("grads", 1, width, gradient), policy)
          .wait();
      for (std::size_t row = 0; row < rows; ++row)
        dense.step(rule, s, row,
                   static_cast<std::int64_t>(row) == named ? gradient : std::vector<double>(width, 0.0));
    }
    ferry::catch_up(exec, rule, table, state).wait();
    CHECK(farthest_apart(take(table), dense.weights) < 1e-12);
    CHECK(state.steps() == 1004);
  }
}

// Several host threads that read rows under step_count::catch_up from one state: readers need no lock of the user's.

namespace history_readers {

/// Momentum, and a look at how many threads work out the update of one step at a time. (In no unnamed namespace, see
/// two_buffers.)
struct watched_momentum {
  static constexpr std::string_view name = "watched_momentum";
  static constexpr int min_fields = 1;
  static inline std::atomic<std::int64_t> watched{0}, calls{0};
  static inline std::atomic<int> inside{0}, most{0};

  double lr = 0.1;

  template <class Compute>
  struct update {
    Compute lr, factor;
    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N]) const {
      state[0] = factor * state[0] + gradient;
      weight -= lr * state[0];
    }
  };
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(ferry::optim::field{"momentum"}); }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    if (step == watched) {
      ++calls;
      if (++inside > most) most = inside.load();
      // Time for a second thread to come in, where it may. It is no error if none does.
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
      while (most < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      --inside;
    }
    return {static_cast<Compute>(lr), static_cast<Compute>(0.9)};
  }
  void check() const {}
};

constexpr std::size_t rows = 6, width = 5, readers = 4;
using space = ferry::mapped_space;

/// A table in training, next to dense training by plain loops. Each step names one row once and has a learning rate of its
/// own, so the two must have the same bits.
template <class Rule, int Fields>
struct in_training {
  exec_space exec;
  std::mt19937_64 random = generator(71);
  Rule rule;
  std::vector<double> start = values<double>(random, rows* width);
  ferry::tensor<double, space> table = make<space>("weights", rows, width, start);
  ferry::optim::state<Rule, double, space> state;
  plain_training<Rule, Fields> dense;
  std::int64_t steps = 0;

  explicit in_training(const Rule& initial_rule)
      : rule(initial_rule), state(ferry::optim::make_state(rule, table)), dense(rule, start, width) {}

  void step() {
    const auto named = static_cast<std::size_t>(++steps) % (rows - 1);
    rule.lr *= 0.99;
    const auto gradient = values<double>(random, width);
    ferry::step(exec, rule, table, state, std::vector<std::size_t>{named},
                make<ferry::device_space>("grads", 1, width, gradient), policy)
        .wait();
    for (std::size_t row = 0; row < rows; ++row)
      dense.step(rule, steps, row, row == named ? gradient : std::vector<double>(width, 0.0));
  }
};

/// `between()` alone, then `readers` threads that gather all rows at once; `turns` times. Returns how many of the gathers
/// gave other bits than dense training.
template <class Training, class Between>
int wrong_readings(Training& training, int turns, const Between& between) {
  std::barrier together(readers + 1);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < readers; ++t)
    threads.emplace_back([&] {
      const exec_space exec;
      std::vector<std::int64_t> every(rows);
      std::iota(every.begin(), every.end(), 0);
      ferry::tensor<double, ferry::device_space> snapshot("seen", rows, width);
      for (int turn = 0; turn < turns; ++turn) {
        together.arrive_and_wait();
        ferry::gather(exec, training.rule, training.table, training.state, every, snapshot).wait();
        const auto values = take(snapshot);
        for (std::size_t i = 0; i < values.size(); ++i)
          if (values[i] != training.dense.weights[i]) {
            ++wrong;
            break;
          }
        together.arrive_and_wait();
      }
    });
  for (int turn = 0; turn < turns; ++turn) {
    between();
    together.arrive_and_wait();
    together.arrive_and_wait();
  }
  for (auto& thread : threads) thread.join();
  return wrong;
}

TEST_CASE("threads that read rows which catch up see dense training", "[optim][step_count][threads]") {
  in_training<ferry::optim::sgd, 1> of({.lr = 0.1, .momentum = 0.9});
  CHECK(wrong_readings(of, 100, [&] {
          for (int s = 0; s < 30; ++s) of.step();
        }) == 0);
}

TEST_CASE("readers that lack a step's update do not work it out at the same time",
          "[optim][step_count][threads]") {
  in_training<watched_momentum, 1> of({});
  for (int s = 0; s < 4; ++s) of.step();
  CHECK(wrong_readings(of, 2, [&] {
          of.step();
          watched_momentum::calls = 0;
          watched_momentum::watched = of.steps;
        }) == 0);
  CHECK(watched_momentum::most == 1);
  CHECK(watched_momentum::calls == 1);
}

}  // namespace history_readers

}  // namespace ferry_test::history_test
