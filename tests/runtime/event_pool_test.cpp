// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/memory/detail/free_list.hpp>

namespace ferry_test::event_pool_test {

struct counted_event {
  counted_event() { ++alive, ++count; }
  counted_event(const counted_event&) = delete;
  counted_event& operator=(const counted_event&) = delete;
  ~counted_event() { --alive; }
  static inline int alive = 0;
  static inline int count = 0;
};

using pool = ferry::detail::event_pool<counted_event, 1>;

TEST_CASE("an event that was dropped is leased again", "[event_pool]") {
  counted_event::count = 0;
  {
    pool events;
    const counted_event* first = events.take().get();
    for (int i = 0; i < 100; ++i) CHECK(events.take().get() == first);
    auto lease = events.take();
    const auto copy = lease;
    lease = nullptr;
    CHECK(events.take().get() != first);  // the copy still has it
    CHECK(counted_event::count == 2);
  }
  CHECK(counted_event::alive == 0);
}

TEST_CASE("events are made by the batch", "[event_pool]") {
  counted_event::count = 0;
  ferry::detail::event_pool<counted_event, 10> events;
  std::vector<ferry::detail::event_pool<counted_event, 10>::lease> out;
  for (int i = 0; i < 10; ++i) out.push_back(events.take());
  CHECK(counted_event::count == 10);
  out.push_back(events.take());
  CHECK(counted_event::count == 20);
}

TEST_CASE("leases outlive their pool", "[event_pool]") {
  auto events = std::make_unique<pool>();
  auto lease = events->take();
  static_cast<void>(events->take());
  events = nullptr;
  CHECK(counted_event::alive == 1);
  lease = nullptr;
  CHECK(counted_event::alive == 0);
}

TEST_CASE("no two threads have one event at a time", "[event_pool]") {
  ferry::detail::event_pool<int> events;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&events] {
      for (int i = 0; i < 2000; ++i) {
        const auto mine = events.take();
        *mine = i;
        const auto second = events.take();
        *second = -1;
        if (*mine != i) std::abort();
      }
    });
}

}  // namespace ferry_test::event_pool_test
