#include "support/manual_event.hpp"

#include <ferry/memory/write_tracker.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

namespace ferry_test {

namespace {

/// An event of work that failed.
class failed_event final : public ferry::event {
 public:
  void wait() override {
    ++waits;
    throw std::runtime_error("the device is gone");
  }
  [[nodiscard]] bool ready() override { return false; }
  int waits = 0;
};

bool waits_still(std::future<void>& waiter) {
  return waiter.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout;
}

}  // namespace

TEST_CASE("a tracker without writes does not wait", "[write_tracker]") {
  ferry::write_tracker tracker;
  tracker.wait();
  tracker.add(nullptr);
  tracker.wait();
}

TEST_CASE("a tracker waits for all writes and then forgets them", "[write_tracker]") {
  ferry::write_tracker tracker;
  const auto first = std::make_shared<manual_event>();
  const auto second = std::make_shared<manual_event>();
  tracker.add(first);
  tracker.add(second);
  auto waiter = std::async(std::launch::async, [&] { tracker.wait(); });
  CHECK(waits_still(waiter));
  first->end();
  CHECK(waits_still(waiter));
  second->end();
  waiter.get();
  const int waits = second->waits;
  tracker.wait();
  CHECK(second->waits == waits);
  CHECK(first.use_count() == 1);
}

TEST_CASE("writes that have ended are dropped when another one is added", "[write_tracker]") {
  ferry::write_tracker tracker;
  const auto first = std::make_shared<manual_event>();
  tracker.add(first);
  first->end();
  const auto second = std::make_shared<manual_event>();
  tracker.add(second);
  CHECK(first.use_count() == 1);
  second->end();
}

TEST_CASE("each of several threads waits for the write", "[write_tracker]") {
  ferry::write_tracker tracker;
  const auto write = std::make_shared<manual_event>();
  tracker.add(write);
  auto one = std::async(std::launch::async, [&] { tracker.wait(); });
  while (write->waits == 0) std::this_thread::yield();
  // The first thread is inside of the wait; a second one must not be let through.
  auto two = std::async(std::launch::async, [&] { tracker.wait(); });
  CHECK(waits_still(two));
  CHECK(waits_still(one));
  write->end();
  one.get();
  two.get();
}

TEST_CASE("a write that failed is not taken for one that ended", "[write_tracker]") {
  ferry::write_tracker tracker;
  const auto write = std::make_shared<failed_event>();
  tracker.add(write);
  CHECK_THROWS_AS(tracker.wait(), std::runtime_error);
  CHECK_THROWS_AS(tracker.wait(), std::runtime_error);
}

}  // namespace ferry_test
