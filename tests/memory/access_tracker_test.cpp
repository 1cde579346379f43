// SPDX-License-Identifier: Apache-2.0
#include "support/manual_event.hpp"
#include "support/test.hpp"

#include <ferry/memory/detail/access_tracker.hpp>

#include <future>

namespace ferry_test::access_tracker_test {

/// An event of work that failed.
class failed_event final : public ferry::detail::event {
 public:
  void wait() override { throw std::runtime_error("the device is gone"); }
  [[nodiscard]] bool ready() override { return false; }
};

using handles = std::vector<ferry::detail::event_handle>;

bool waits_still(std::future<void>& waiter) {
  return waiter.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout;
}

TEST_CASE("a tracker without accesses does not wait", "[access_tracker]") {
  ferry::detail::access_tracker tracker;
  tracker.wait_for_writes();
  tracker.add_write(nullptr, 1);
  tracker.add_read(nullptr, 1);
  tracker.wait_for_all();
  CHECK(tracker.before_write(2).empty());
}

TEST_CASE("readers come after writes and writers after both, those of other instances", "[access_tracker]") {
  ferry::detail::access_tracker tracker;
  const auto write = std::make_shared<manual_event>();
  const auto read = std::make_shared<manual_event>();
  tracker.add_write(write, 1);
  tracker.add_read(read, 2);
  CHECK(tracker.before_read(1).empty());
  CHECK(tracker.before_read(2) == handles{write});
  CHECK(tracker.before_read(3) == handles{write});
  CHECK(tracker.before_write(1) == handles{read});
  CHECK(tracker.before_write(2) == handles{write});
  CHECK(tracker.before_write(3) == handles{write, read});
  CHECK(write->waits == 0);
  CHECK(read->waits == 0);
}

TEST_CASE("an instance's later work stands for its earlier work", "[access_tracker]") {
  ferry::detail::access_tracker tracker;
  const auto first = std::make_shared<manual_event>();
  const auto second = std::make_shared<manual_event>();
  tracker.add_write(first, 1);
  tracker.add_write(second, 1);
  CHECK(tracker.before_read(2) == handles{second});
  CHECK(first.use_count() == 1);
  // A read of the same instance does not stand for its write: a reader need not wait for it.
  const auto read = std::make_shared<manual_event>();
  tracker.add_read(read, 1);
  CHECK(tracker.before_read(2) == handles{second});
  CHECK(tracker.before_write(2) == handles{second, read});
}

TEST_CASE("what has ended is dropped when more is added", "[access_tracker]") {
  ferry::detail::access_tracker tracker;
  std::vector<std::shared_ptr<manual_event>> events;
  for (ferry::detail::instance_id who = 0; who < 100; ++who) {
    events.push_back(std::make_shared<manual_event>());
    tracker.add_read(events.back(), who);
    if (who >= 3) events[who - 3]->end();
  }
  CHECK(tracker.before_write(1000).size() <= 4);
  CHECK(events[0].use_count() == 1);
  CHECK(events[99].use_count() == 2);
}

TEST_CASE("the host waits for all writes, before writing for reads as well, and then forgets them",
          "[access_tracker]") {
  ferry::detail::access_tracker tracker;
  const auto first = std::make_shared<manual_event>();
  const auto second = std::make_shared<manual_event>();
  const auto read = std::make_shared<manual_event>();
  tracker.add_write(first, 1);
  tracker.add_write(second, 2);
  tracker.add_read(read, 3);
  auto reader = std::async(std::launch::async, [&] { tracker.wait_for_writes(); });
  CHECK(waits_still(reader));
  first->end();
  CHECK(waits_still(reader));
  second->end();
  reader.get();
  CHECK(read->waits == 0);
  CHECK(first.use_count() == 1);
  auto writer = std::async(std::launch::async, [&] { tracker.wait_for_all(); });
  CHECK(waits_still(writer));
  read->end();
  writer.get();
  CHECK(read.use_count() == 1);
  const int waits = read->waits;
  tracker.wait_for_all();
  CHECK(read->waits == waits);
}

TEST_CASE("each of several threads waits for the write", "[access_tracker]") {
  ferry::detail::access_tracker tracker;
  const auto write = std::make_shared<manual_event>();
  tracker.add_write(write, 1);
  auto waiter = std::async(std::launch::async, [&] { tracker.wait_for_writes(); });
  while (write->waits == 0) std::this_thread::yield();
  // The first thread is inside of the wait; a second one must not be let through.
  auto two = std::async(std::launch::async, [&] { tracker.wait_for_writes(); });
  CHECK(waits_still(two));
  CHECK(waits_still(waiter));
  write->end();
  waiter.get();
  two.get();
}

TEST_CASE("a write that failed is not taken for one that ended", "[access_tracker]") {
  ferry::detail::access_tracker tracker;
  const auto write = std::make_shared<failed_event>();
  tracker.add_write(write, 1);
  CHECK_THROWS_AS(tracker.wait_for_writes(), std::runtime_error);
  CHECK_THROWS_AS(tracker.wait_for_writes(), std::runtime_error);
}

}  // namespace ferry_test::access_tracker_test
