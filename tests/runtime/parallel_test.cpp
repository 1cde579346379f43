// SPDX-License-Identifier: Apache-2.0
#include "../../src/runtime/worker_pool.hpp"
#include "support/test.hpp"

#include <ferry/runtime/detail/parallel.hpp>

#include <catch2/generators/catch_generators.hpp>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <set>

/// Pieces of work that the calling thread and its helpers share.
namespace ferry_test::parallel_test {

using ferry::detail::front_queue;
using ferry::detail::helper_threads;
using ferry::detail::parallel;
using ferry::detail::thread_choice;

#if defined(__SANITIZE_THREAD__)
constexpr bool may_fork = false;  // ThreadSanitizer refuses threads in a child
#else
constexpr bool may_fork = true;
#endif

TEST_CASE("each item is in one piece, and numbers of workers are below the limit", "[parallel]") {
  const auto kind =
      GENERATE(helper_threads::pooled, helper_threads::temporary, helper_threads::beside_caller);
  const auto caller = std::this_thread::get_id();
  for (const std::int64_t items : {0, 1, 7, 1000, 1001})
    for (const int most : {1, 2, 5}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(items));
      std::atomic<int> wrong{0};
      std::mutex guard;
      std::set<int> numbers;
      std::set<std::thread::id> threads;
      parallel(items, 10, {most, kind}, [&](front_queue& pieces, int number) {
        {
          const std::lock_guard lock(guard);
          if (!numbers.insert(number).second || number < 0 || number >= most) ++wrong;
          if (!threads.insert(std::this_thread::get_id()).second) ++wrong;
          if ((number == 0) != (std::this_thread::get_id() == caller)) ++wrong;
        }
        for (std::int64_t first = 0, count = 0; pieces.take(first, count);) {
          if (first % 10 != 0 || count < 1 || count > 10) ++wrong;
          for (std::int64_t i = first; i < first + count; ++i) ++visits[static_cast<std::size_t>(i)];
        }
      });
      CHECK(wrong == 0);
      CHECK(std::all_of(visits.begin(), visits.end(), [](const auto& visit) { return visit == 1; }));
      CHECK(threads.size() <= static_cast<std::size_t>((items + 9) / 10));
    }
}

TEST_CASE("after an error no further piece is given out, and all workers end", "[parallel]") {
  const auto kind =
      GENERATE(helper_threads::pooled, helper_threads::temporary, helper_threads::beside_caller);
  const int culprit = GENERATE(0, 1);
  std::atomic<int> pieces_after{0}, running{0};
  std::atomic<bool> thrown{false}, helped{false};
  const auto work = [&](front_queue& pieces, int number) {
    struct mark {
      std::atomic<int>& count;
      explicit mark(std::atomic<int>& running) : count(running) { ++count; }
      mark(const mark&) = delete;
      mark& operator=(const mark&) = delete;
      ~mark() { --count; }
    } const present(running);
    if (number == 1) helped = true;
    for (std::size_t i = 0; pieces.take(i);) {
      if (thrown) {
        ++pieces_after;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      if (number == culprit) {
        thrown = true;
        throw std::runtime_error("a bad piece");
      }
      while (!thrown) std::this_thread::yield();
    }
  };
  CHECK_THROWS_MATCHES(parallel(100000, 1, {2, kind}, work), std::runtime_error,
                       Catch::Matchers::Message("a bad piece"));
  CHECK(helped);
  CHECK(running == 0);
  // The other worker may get pieces until the error has reached the queue.
  CHECK(pieces_after <= 1000);
}

TEST_CASE("calls within calls and of many threads end", "[parallel]") {
  const auto kind =
      GENERATE(helper_threads::pooled, helper_threads::temporary, helper_threads::beside_caller);
  std::atomic<std::int64_t> sum{0};
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 10; ++round)
        parallel(4, 1, {3, kind}, [&](front_queue& pieces, int) {
          for (std::size_t i = 0; pieces.take(i);)
            parallel(50, 7, {3, kind}, [&](front_queue& inner, int) {
              for (std::int64_t first = 0, count = 0; inner.take(first, count);) sum += count;
            });
        });
    });
  callers.clear();
  CHECK(sum == 4 * 10 * 4 * 50);
}

TEST_CASE("temporary helpers run on the processors of the process or of the calling thread", "[parallel]") {
  using ferry::detail::processor_set;
  const processor_set processors = processor_set::of_process();
  std::thread([&] {
    cpu_set_t processor;
    CPU_ZERO(&processor);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &processor);
    REQUIRE(sched_setaffinity(0, sizeof processor, &processor) == 0);
    const processor_set caller = processor_set::of_thread();
    for (const auto kind : {helper_threads::temporary, helper_threads::beside_caller}) {
      processor_set helper;
      std::atomic<bool> helped{false};
      parallel(2, 1, {2, kind}, [&](front_queue&, int number) {
        if (number == 1) {
          helper = processor_set::of_thread();
          helped = true;
        }
        while (!helped) std::this_thread::yield();
      });
      CHECK(helper == (kind == helper_threads::temporary ? processors : caller));
    }
  }).join();
}

TEST_CASE("a child that is forked within a piece ends its call without helpers", "[parallel]") {
  if (!may_fork) SKIP("ThreadSanitizer refuses threads in a child");
  const auto kind =
      GENERATE(helper_threads::pooled, helper_threads::temporary, helper_threads::beside_caller);
  std::atomic<bool> forked{false};
  pid_t child = -1;
  bool in_child = false;
  parallel(100, 1, {3, kind}, [&](front_queue& pieces, int number) {
    for (std::size_t i = 0; pieces.take(i);) {
      if (number == 0 && !forked) {
        child = ::fork();
        in_child = child == 0;
        if (in_child) ::alarm(20);
        forked = true;
      }
      while (!forked) std::this_thread::yield();
    }
  });
  if (in_child) {
    std::atomic<int> pieces_of_child{0};
    parallel(10, 1, {3, kind}, [&](front_queue& pieces, int) {
      for (std::size_t i = 0; pieces.take(i);) ++pieces_of_child;
    });
    ::_exit(pieces_of_child == 10 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace ferry_test::parallel_test
