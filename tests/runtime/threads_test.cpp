// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/random.hpp"

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace ferry_test::threads_test {

namespace {

constexpr std::int64_t rows = 300, n = 97, width = 12;
constexpr int rounds = 25;

std::vector<std::int64_t> indices_of(std::int64_t seed) {
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) drawn[static_cast<std::size_t>(i)] = (i * i * 31 + seed * 17) % rows;
  return drawn;
}

/// Operands that all threads read, and those that each of them writes.
struct shared_operands {
  ferry::tensor<float, ferry::mapped_space> table{"read by all threads", rows, width};
  ferry::row_plan plan;

  explicit shared_operands(const exec_space& exec) {
    ferry::init::uniform(exec, table, -1.0f, 1.0f, 5);
    plan = ferry::make_plan(exec, indices_of(0), rows);
    exec.fence("ferry_test::made");
  }
};

/// Rounds of verbs of one thread, of which it waits for some, lets others go and drops tickets of the rest.
std::vector<float> work(const exec_space& exec, const shared_operands& operands, int thread) {
  ferry::tensor<float, ferry::device_space> thread_table("own", rows, width), batch("batch", n, width),
      planned("planned", n, width);
  ferry::init::zeros(exec, thread_table);
  const ferry::optim::adam rule{.lr = 1e-2};
  auto state = ferry::optim::make_state(rule, thread_table);
  for (int round = 0; round < rounds; ++round) {
    const auto mine = indices_of(thread * 100 + round);
    ferry::gather(exec, operands.table, mine, batch).detach();
    { const auto dropped = ferry::gather(exec, operands.table, operands.plan, planned); }
    ferry::scatter_add(exec, thread_table, mine, batch).detach();
    ferry::step(exec, rule, thread_table, state, operands.plan, planned).wait();
    ferry::scatter(exec, thread_table, operands.plan, batch, ferry::duplicates::mean{}).detach();
  }
  exec.fence("ferry_test::worked");
  return take(thread_table);
}

}  // namespace

TEST_CASE("threads with instances of their own share tables, plans and the engine", "[threads]") {
  constexpr int threads = 4;
  const exec_space exec;
  const shared_operands operands(exec);
  std::vector<std::vector<float>> expected, results(threads);
  for (int t = 0; t < threads; ++t) expected.push_back(work(exec, operands, t));

  // A host's threads share its instance: Kokkos divides no more cores than there are.
  std::vector<exec_space> instances(threads, exec);
  if constexpr (!ferry::detail::is_host_exec<exec_space>)
    instances = Kokkos::Experimental::partition_space(exec, std::vector<int>(threads, 1));
  std::atomic<bool> over{false};
  std::thread trims([&over] {
    while (!over) {
      static_cast<void>(ferry::trim());
      static_cast<void>(ferry::memory_statistics<ferry::pinned_space>());
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&, t] {
      results[static_cast<std::size_t>(t)] = work(instances[static_cast<std::size_t>(t)], operands, t);
    });
  for (auto& thread : workers) thread.join();
  over = true;
  trims.join();
  for (std::size_t t = 0; t < results.size(); ++t) CHECK(results[t] == expected[t]);
}

}  // namespace ferry_test::threads_test
