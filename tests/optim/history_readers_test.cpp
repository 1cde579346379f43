// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"

#include <catch2/catch_test_macros.hpp>

#include <boost/hana/tuple.hpp>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

/// Several host threads that read rows under step_count::catch_up from one state: readers need no lock of the user's.
namespace ferry_test::history_readers_test {

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

namespace {

constexpr std::size_t rows = 6, width = 5, readers = 4;
const ferry::step_count::catch_up policy;
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

}  // namespace

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

}  // namespace ferry_test::history_readers_test
