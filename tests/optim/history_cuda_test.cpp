// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/test.hpp"

#include <cuda_runtime.h>

#include <barrier>

/// Updates of steps that are sent to the device by one instance and read by others.
namespace ferry_test::history_cuda_test {

constexpr std::size_t rows = 40, width = 12;
constexpr std::size_t streams = 2;

/// Makes the instance late.
void delay(const exec_space& exec) {
  const auto status = cudaLaunchHostFunc(
      exec.cuda_stream(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr);
  REQUIRE(status == cudaSuccess);
}

std::vector<exec_space> instances() {
  return Kokkos::Experimental::partition_space(exec_space{}, std::vector<int>(streams, 1));
}

/// A table in training under catch_up, next to dense training by plain loops, whose bits it must have.
template <class Space>
struct in_training {
  std::mt19937_64 random = generator(73);
  ferry::optim::sgd rule{.lr = 0.1, .momentum = 0.9};
  std::vector<double> start = values<double>(random, rows* width);
  ferry::tensor<double, Space> table = make<Space>("weights", rows, width, start);
  ferry::optim::state<ferry::optim::sgd, double, Space> state = ferry::optim::make_state(rule, table);
  plain_training<ferry::optim::sgd, 1> dense{rule, start, width};
  std::int64_t steps = 0;

  void step(const exec_space& exec) {
    const auto named = static_cast<std::size_t>(++steps) % (rows - 1);
    rule.lr *= 0.99;
    const auto gradient = values<double>(random, width);
    ferry::step(exec, rule, table, state, std::vector<std::size_t>{named},
                make<ferry::device_space>("grads", 1, width, gradient), ferry::step_count::catch_up{})
        .wait();
    for (std::size_t row = 0; row < rows; ++row)
      dense.step(rule, steps, row, row == named ? gradient : std::vector<double>(width, 0.0));
  }
};

std::vector<std::int64_t> every_row() {
  std::vector<std::int64_t> every(rows);
  std::iota(every.begin(), every.end(), 0);
  return every;
}

TEMPLATE_TEST_CASE("an instance reads updates that another one has yet to send", "[optim][step_count]",
                   ferry::device_space, ferry::mapped_space) {
  in_training<TestType> training;
  const auto exec = instances();
  const auto every = make<ferry::device_space>("every", every_row());
  ferry::tensor<double, ferry::device_space> late("late", rows, width), soon("soon", rows, width);
  for (int turn = 0; turn < 30; ++turn) {
    for (int s = 0; s < 1 + 40 * (turn % 3); ++s) training.step(exec[0]);
    put(late, std::vector<double>(rows * width, -77.0));
    put(soon, std::vector<double>(rows * width, -77.0));
    delay(exec[0]);
    auto first = ferry::gather(exec[0], training.rule, training.table, training.state, every, late);
    auto second = ferry::gather(exec[1], training.rule, training.table, training.state, every, soon);
    second.wait();
    first.wait();
    CHECK(take(soon) == training.dense.weights);
    CHECK(take(late) == training.dense.weights);
  }
}

TEMPLATE_TEST_CASE("threads with instances of their own read rows that catch up",
                   "[optim][step_count][threads]", ferry::device_space, ferry::mapped_space) {
  in_training<TestType> training;
  const auto exec = instances();
  const exec_space stepping;
  constexpr int turns = 200;
  std::barrier together(streams + 1);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < streams; ++t)
    threads.emplace_back([&, t] {
      const auto every = make<ferry::device_space>("every", every_row());
      ferry::tensor<double, ferry::device_space> snapshot("seen", rows, width);
      for (int turn = 0; turn < turns; ++turn) {
        together.arrive_and_wait();
        ferry::gather(exec[t], training.rule, training.table, training.state, every, snapshot).wait();
        if (take(snapshot) != training.dense.weights) ++wrong;
        together.arrive_and_wait();
      }
    });
  for (int turn = 0; turn < turns; ++turn) {
    for (int s = 0; s < 3; ++s) training.step(stepping);
    together.arrive_and_wait();
    together.arrive_and_wait();
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("instances take turns with steps of rows that count, under a schedule", "[optim][step_count]") {
  const auto exec = instances();
  auto random = generator(79);
  const auto start = values<double>(random, rows * width);
  auto table = make<ferry::device_space>("weights", rows, width, start);
  ferry::optim::adam rule{.lr = 0.1};
  auto state = ferry::optim::make_state(rule, table);
  plain_training<ferry::optim::adam, 2> expected(rule, start, width);
  std::vector<std::int64_t> counts(rows);
  std::vector<ferry::tensor<std::size_t, ferry::device_space>> indices;
  std::vector<ferry::tensor<double, ferry::device_space>> grads;
  std::vector<ferry::ticket> tickets;
  for (std::size_t s = 0; s < 60; ++s) {
    rule.lr *= 0.99;
    const std::vector<std::size_t> ids{s % 7, 7 + s % 5};
    const auto gradient = values<double>(random, 2 * width);
    indices.push_back(make<ferry::device_space>("which", ids));
    grads.push_back(make<ferry::device_space>("grads", 2, width, gradient));
    if (s % 20 == 0) delay(exec[s % 2]);
    tickets.push_back(ferry::step(exec[s % 2], rule, table, state, indices.back(), grads.back(),
                                  ferry::step_count::per_row{}));
    for (std::size_t p = 0; p < 2; ++p) {
      const auto first = gradient.begin() + static_cast<std::ptrdiff_t>(p * width);
      expected.step(rule, ++counts[ids[p]], ids[p], {first, first + width});
    }
  }
  for (auto& ticket : tickets) ticket.wait();
  CHECK(take(table) == expected.weights);
}

}  // namespace ferry_test::history_cuda_test
