// SPDX-License-Identifier: Apache-2.0
#include "../../src/runtime/worker_pool.hpp"
#include "support/test.hpp"

#include <ferry/runtime/detail/parallel.hpp>

#include <sched.h>

#include <csignal>
#include <mutex>
#include <set>

#if defined(_OPENMP)
#include <omp.h>
#endif

/// The threads that help the callers of verbs.
namespace ferry_test::worker_pool_test {

using ferry::detail::processor_set;
using ferry::detail::worker_pool;
using ferry::detail::worker_team;

/// Each number from 0 to items - 1, taken by one worker or another.
struct shared_list {
  explicit shared_list(int items) : counts(static_cast<std::size_t>(items)) {}
  std::vector<std::atomic<int>> counts;
  std::atomic<std::size_t> next{0};

  void work() {
    for (std::size_t i = next++; i < counts.size(); i = next++) ++counts[i];
  }
  [[nodiscard]] bool is_done_once() const {
    return std::all_of(counts.begin(), counts.end(), [](const auto& times) { return times == 1; });
  }
};

/// Who took part in a run.
struct roll {
  std::mutex guard;
  std::set<int> workers;
  std::set<std::thread::id> threads;

  void note(int worker) {
    const std::lock_guard lock(guard);
    workers.insert(worker);
    threads.insert(std::this_thread::get_id());
  }
};

std::set<int> first_numbers(int count) {
  std::set<int> numbers;
  for (int i = 0; i < count; ++i) numbers.insert(i);
  return numbers;
}

/// Threads of a worker team that wait for each other: all of them run at once.
void split(std::atomic<int>& arrived, int count) {
  ++arrived;
  while (arrived < count) std::this_thread::yield();
}

TEST_CASE("a worker team's workers are threads of their own that work at once", "[pool]") {
  worker_team workers(5, 8);
  REQUIRE(workers.helpers() == 5);
  roll present;
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> arrived{0};
    workers.run([&](int worker) {
      present.note(worker);
      split(arrived, 6);
    });
  }
  CHECK(present.workers == first_numbers(6));
  CHECK(present.threads.size() == 6);  // the same ones in every round
  CHECK(present.threads.count(std::this_thread::get_id()) == 1);
}

TEST_CASE("a worker team without helpers is the calling thread", "[pool]") {
  worker_team alone;
  roll present;
  alone.run([&](int worker) { present.note(worker); });
  CHECK(present.workers == first_numbers(1));
  CHECK(present.threads == std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST_CASE("a pool makes no more threads than it may, but one for each worker team that would have none",
          "[pool]") {
  worker_pool pool;
  auto* first = pool.hire(10, 3);
  CHECK(pool.size() == 3);
  auto* second = pool.hire(10, 3);
  CHECK(pool.size() == 4);
  REQUIRE(second != nullptr);
  CHECK(second->next == nullptr);
  CHECK(pool.hire(0, 3) == nullptr);
  pool.give_back(first);
  pool.give_back(second);
  int count = 0;
  auto* list = pool.hire(10, 3);
  for (auto* thread = list; thread != nullptr; thread = thread->next) ++count;
  CHECK(count == 4);
  CHECK(pool.size() == 4);
  pool.give_back(list);
}

TEST_CASE("many threads have worker teams at once, more than there are threads to be had", "[pool]") {
  constexpr int callers = 12;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        shared_list list(40);
        worker_team workers(4, 6);
        workers.run([&](int) { list.work(); });
        if (!list.is_done_once()) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

// A thread waits for what another worker team's calling thread is to do: no worker team may keep another one
// from beginning.
TEST_CASE("worker teams that wait for each other come to an end", "[pool]") {
  std::atomic<bool> signal{false};
  std::atomic<bool> waiting{false};
  std::thread waits([&] {
    worker_team workers(6, 6);
    workers.run([&](int) {
      waiting = true;
      while (!signal) std::this_thread::yield();
    });
  });
  while (!waiting) std::this_thread::yield();
  worker_team workers(6, 6);
  CHECK(workers.helpers() >= 1);
  workers.run([&](int worker) {
    if (worker == 1) signal = true;  // by a helper
  });
  waits.join();
  CHECK(signal);
}

TEST_CASE("an error of any worker is thrown when all have ended", "[pool]") {
  struct at_end {
    std::atomic<int>& count;
    ~at_end() { ++count; }
  };
  worker_team workers(4, 8);
  REQUIRE(workers.helpers() == 4);
  for (const int culprit : {0, 3}) {
    std::atomic<int> ended{0};
    std::atomic<bool> thrown{false};
    CHECK_THROWS_MATCHES(workers.run([&](int worker) {
      const at_end guard{ended};
      if (worker == culprit) {
        thrown = true;
        throw std::runtime_error("by one");
      }
      while (!thrown) std::this_thread::yield();
    }),
                         std::runtime_error, Catch::Matchers::Message("by one"));
    CHECK(ended == 5);
  }
  std::atomic<int> ended{0};
  CHECK_THROWS_MATCHES(workers.run([&](int) {
    const at_end guard{ended};
    throw std::runtime_error("by all");
  }),
                       std::runtime_error, Catch::Matchers::Message("by all"));
  CHECK(ended == 5);
  shared_list list(100);  // and the worker team goes on
  workers.run([&](int) { list.work(); });
  CHECK(list.is_done_once());
}

TEST_CASE("a worker team that is left while its helpers work waits for them", "[pool]") {
  std::atomic<bool> signal{false};
  std::atomic<int> ended{0};
  const auto work = [&](int) {
    while (!signal) std::this_thread::yield();
    ++ended;
  };
  std::thread tells;
  {
    worker_team workers(2, 4);
    REQUIRE(workers.helpers() == 2);
    workers.start(work);
    tells = std::thread([&] { signal = true; });
  }
  CHECK(ended == 2);
  tells.join();
}

#if defined(_OPENMP)
TEST_CASE("threads of a parallel region have worker teams of their own", "[pool]") {
  std::atomic<int> wrong{0};
  std::atomic<int> helpers{0};
#pragma omp parallel num_threads(3)
  {
    shared_list list(500);
    worker_team workers(2, 8);
    helpers += workers.helpers();
    workers.run([&](int) { list.work(); });
    if (!list.is_done_once()) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(helpers >= 3);
}
#endif

// Whoever computes on the host's instance meanwhile must not wait for the worker team.
TEST_CASE("host kernels run while a worker team works", "[pool]") {
  std::atomic<bool> computed{false};
  worker_team workers(1, 4);
  REQUIRE(workers.helpers() == 1);
  workers.run([&](int worker) {
    if (worker == 0) {
      int sum = 0;
      std::thread helper([&] {
        const Kokkos::DefaultHostExecutionSpace host;
        Kokkos::View<int*, Kokkos::HostSpace> ones("ones", 100);
        Kokkos::deep_copy(host, ones, 1);
        host.fence("ferry_test::pool");
        for (int i = 0; i < 100; ++i) sum += ones(i);
      });
      helper.join();
      CHECK(sum == 100);
      computed = true;
    } else {
      while (!computed) std::this_thread::yield();
    }
  });
}

TEST_CASE("a thread that is bound to one processor has helpers that are not", "[pool]") {
  const processor_set processors = processor_set::of_process();
  std::vector<processor_set> sets(3);
  std::thread bound([&] {
    cpu_set_t processor;
    CPU_ZERO(&processor);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &processor);
    REQUIRE(sched_setaffinity(0, sizeof processor, &processor) == 0);
    sets[0] = processor_set::of_thread();
    worker_pool pool;
    auto* helper = pool.hire(1, 1);
    REQUIRE(helper != nullptr);
    helper->begin(
        [](void* processors_read, int) noexcept {
          *static_cast<processor_set*>(processors_read) = processor_set::of_thread();
        },
        &sets[1], 1);
    helper->wait();
    pool.give_back(helper);
    sets[2] = processor_set::of_process();
  });
  bound.join();
  CHECK(sets[1] == processors);
  CHECK(sets[2] == processors);
  if (std::thread::hardware_concurrency() > 1) CHECK_FALSE(sets[0] == processors);
}

TEST_CASE("signals for the process are not a helper's", "[pool]") {
  sigset_t blocked{}, before{}, after{};
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  worker_pool pool;
  auto* helper = pool.hire(1, 1);
  REQUIRE(helper != nullptr);
  helper->begin(
      [](void* mask, int) noexcept { pthread_sigmask(SIG_SETMASK, nullptr, static_cast<sigset_t*>(mask)); },
      &blocked, 1);
  helper->wait();
  pool.give_back(helper);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  CHECK(sigismember(&blocked, SIGINT) == 1);
  CHECK(sigismember(&blocked, SIGTERM) == 1);
  CHECK(sigismember(&blocked, SIGSEGV) == 0);
  CHECK(sigismember(&after, SIGINT) == sigismember(&before, SIGINT));
}

}  // namespace ferry_test::worker_pool_test
