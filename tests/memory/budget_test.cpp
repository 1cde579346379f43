// SPDX-License-Identifier: Apache-2.0
#include "../../src/memory/block_cache.hpp"
#include "support/block_uses.hpp"
#include "support/heap_space.hpp"
#include "support/manual_event.hpp"
#include "support/test.hpp"

#include <future>

namespace ferry_test::budget_test {

/// A budget of a real space, for one test.
template <class Space>
struct budget_of {
  explicit budget_of(std::size_t bytes) { ferry::set_memory_budget<Space>(bytes); }
  budget_of(const budget_of&) = delete;
  budget_of& operator=(const budget_of&) = delete;
  ~budget_of() { ferry::set_memory_budget<Space>(0); }
};

struct threads_tag {
  static constexpr std::string_view name = "threads_space";
};
struct gate_tag {
  static constexpr std::string_view name = "gate_space";
};
struct pool_tag {
  static constexpr std::string_view name = "pool_space";
};
struct short_tag {
  static constexpr std::string_view name = "short_space";
};
struct waiting_tag {
  static constexpr std::string_view name = "waiting_space";
};

TEMPLATE_TEST_CASE("a tensor that would pass its space's budget is refused, and nothing changes", "[budget]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  ferry::trim();
  const auto before = ferry::memory_statistics<TestType>();
  const budget_of<TestType> budget(before.current + 10000);
  CHECK(ferry::memory_statistics<TestType>().budget == before.current + 10000);
  const ferry::tensor<std::int8_t, TestType> fits("fits", 6000);
  const auto full = ferry::memory_statistics<TestType>();
  CHECK_THROWS_MATCHES(
      (ferry::tensor<std::int8_t, TestType>("one too many", 4001)), ferry::budget_exceeded,
      MessageMatches(ContainsSubstring(std::string(TestType::name)) &&
                     ContainsSubstring("'ferry::tensor::one too many'") && ContainsSubstring("4001 bytes") &&
                     ContainsSubstring(std::to_string(full.current) + " bytes") &&
                     ContainsSubstring(std::to_string(before.current + 10000))));
  const auto after = ferry::memory_statistics<TestType>();
  CHECK(after.current == full.current);
  CHECK(after.peak == full.peak);
  CHECK(after.total_count == full.total_count);
  CHECK_THROWS_AS((ferry::tensor<std::int8_t, TestType>("overflow", ~std::size_t{0} >> 1)),
                  ferry::budget_exceeded);
  const ferry::tensor<std::int8_t, TestType> just("just", 4000);
  CHECK(just.size() == 4000);
  ferry::set_memory_budget<TestType>(0);
  const ferry::tensor<std::int8_t, TestType> more("more", 100000);
  CHECK(more.size() == 100000);
  // A budget that is passed already forbids what comes, and takes nothing away.
  ferry::set_memory_budget<TestType>(1);
  CHECK_THROWS_AS((ferry::tensor<std::int8_t, TestType>("late", 1)), ferry::budget_exceeded);
  CHECK(more.data() != nullptr);
}

TEST_CASE("a budget first takes the idle blocks of the pools, as many as it needs", "[budget]") {
  using space = heap_space<pool_tag>;
  ferry::detail::block_cache<space> cache;
  { const auto first = cache.take(4096), second = cache.take(8192); }
  ferry::set_memory_budget<space>(16384);
  CHECK(ferry::memory_statistics<space>().reserved == 12288);
  const ferry::detail::allocation<space> table("table", 5000);
  CHECK(ferry::memory_statistics<space>().reserved == 4096);
  CHECK(ferry::memory_statistics<space>().current == 9096);
  // A block that can never fit takes nothing away.
  CHECK_THROWS_AS(ferry::detail::allocation<space>("never", 16385), ferry::budget_exceeded);
  CHECK(ferry::memory_statistics<space>().reserved == 4096);
  const ferry::detail::allocation<space> rest("rest", 16384 - 5000);
  CHECK(ferry::memory_statistics<space>().reserved == 0);
  CHECK_THROWS_AS(cache.take(1), ferry::budget_exceeded);
}

TEST_CASE("threads that allocate at the same time stay inside of the budget together", "[budget]") {
  using space = heap_space<threads_tag>;
  constexpr std::size_t budget = 10 * 100 + 50;
  ferry::set_memory_budget<space>(budget);
  space::limit = budget;  // the heap itself refuses more, by another error
  std::atomic<int> refused{0}, successes{0}, wrong{0};
  std::vector<std::thread> workers;
  for (int t = 0; t < 4; ++t)
    workers.emplace_back([&] {
      std::vector<ferry::detail::allocation<space>> blocks;
      for (int i = 0; i < 400; ++i) {
        try {
          blocks.emplace_back("block", std::size_t{100});
          ++successes;
        } catch (const ferry::budget_exceeded&) {
          ++refused;
          blocks.clear();
        } catch (...) {
          ++wrong;
        }
        if (i % 16 == 0) std::this_thread::yield();
      }
    });
  for (auto& thread : workers) thread.join();
  CHECK(wrong == 0);
  CHECK(refused > 0);
  CHECK(successes > 10);
  CHECK(ferry::memory_statistics<space>().peak <= 1000);
  CHECK(ferry::memory_statistics<space>().current == 0);
}

TEST_CASE("an allocation that is still being made has its share of the budget", "[budget]") {
  using space = heap_space<gate_tag>;
  ferry::set_memory_budget<space>(1000);
  space::gate = true;
  auto first = std::async(std::launch::async, [] { return ferry::detail::allocation<space>("first", 600); });
  while (space::usage == 0) std::this_thread::yield();
  CHECK(ferry::memory_statistics<space>().current == 0);
  bool refused = false;
  auto second = std::async(std::launch::async, [&refused] {
    try {
      const ferry::detail::allocation<space> late("second", 401);
    } catch (const ferry::budget_exceeded&) {
      refused = true;
    }
  });
  second.wait_for(std::chrono::seconds(1));
  space::gate = false;
  space::gate.notify_all();
  second.get();
  CHECK(refused);
  CHECK(first.get().bytes() == 600);
  const ferry::detail::allocation<space> fits("fits", 1000);
  CHECK(ferry::memory_statistics<space>().peak == 1000);
}

TEST_CASE("where the system has no memory left, idle blocks are given back before it is said", "[budget]") {
  using space = heap_space<short_tag>;
  ferry::detail::block_cache<space> cache, peer;
  space::limit = 20000;
  { const auto first = cache.take(8192), second = peer.take(8192); }
  const ferry::detail::allocation<space> table("table", 15000);
  CHECK(ferry::memory_statistics<space>().reserved == 0);
  CHECK_THROWS_MATCHES(ferry::detail::allocation<space>("large", 6000), ferry::bad_alloc,
                       MessageMatches(ContainsSubstring("no heap left for 'ferry::large'") &&
                                      ContainsSubstring("15000 bytes of short_space are held") &&
                                      ContainsSubstring("0 of them idle")));
  const ferry::detail::allocation<space> fits("fits", 5000);
  CHECK(ferry::memory_statistics<space>().current == 20000);
}

TEST_CASE("blocks in ticket_state are waited for only where memory is short and no other is idle",
          "[budget]") {
  using space = heap_space<waiting_tag>;
  ferry::detail::block_cache<space> cache;
  const auto work = std::make_shared<manual_event>();
  auto busy = cache.take(8192);
  auto idle = cache.take(4096);
  CHECK(release_after(busy, work, 1));
  idle.reset();
  ferry::set_memory_budget<space>(16384);
  const ferry::detail::allocation<space> first("first", 8000);  // the idle block will do
  CHECK(work->waits == 0);
  CHECK(ferry::memory_statistics<space>().reserved == 8192);
  auto second =
      std::async(std::launch::async, [] { return ferry::detail::allocation<space>("second", 8000); });
  while (work->waits == 0) std::this_thread::yield();
  CHECK(ferry::memory_statistics<space>().current == 16192);
  work->end();
  CHECK(second.get().bytes() == 8000);
}

}  // namespace ferry_test::budget_test
