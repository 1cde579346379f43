// SPDX-License-Identifier: Apache-2.0
#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/rows/detail/ring_progress.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <thread>

/// How the workers of a ring wait for the device, and who asks it whether it still works.
namespace ferry_test::ring_progress_test {

/// The end of a kernel that has ended, has failed or goes on; notes which thread asks.
class fake_end final : public ferry::detail::event {
 public:
  enum class fate { goes_on, ended, failed };
  std::atomic<fate> now{fate::goes_on};
  std::atomic<int> questions{0};
  std::atomic<bool> asked_by_waiter{false};
  std::thread::id waiter = std::this_thread::get_id();

  void wait() override {}
  [[nodiscard]] bool ready() override {
    ++questions;
    if (std::this_thread::get_id() == waiter) asked_by_waiter = true;
    if (now == fate::failed) throw ferry::device_error("the device has failed");
    return now == fate::ended;
  }
};

constexpr auto never = [] { return false; };

using ferry::detail::ring_progress;

TEST_CASE("what is there is not waited for, nor asked about", "[ring][progress][once]") {
  fake_end end;
  ring_progress progress;
  progress.served = &end;
  CHECK(progress.await([] { return true; }));
  progress.end();
  CHECK(end.questions == 0);
}

TEST_CASE("a worker that waits ends where another one gave up", "[ring][progress][once]") {
  ring_progress progress;
  std::thread gives_up([&] { CHECK(progress.give_up()); });
  CHECK_FALSE(progress.await(never));
  gives_up.join();
  CHECK_FALSE(progress.give_up());
  progress.end();
}

TEST_CASE("a kernel that ended without its answer is an error", "[ring][progress][once]") {
  fake_end end;
  end.now = fake_end::fate::ended;
  ring_progress progress;
  progress.label.assign(std::string_view("ferry_test::ring"));
  progress.served = &end;
  CHECK_THROWS_MATCHES(
      progress.await(never), ferry::device_error,
      Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("ferry_test::ring")));
  CHECK_FALSE(end.asked_by_waiter);
  progress.end();
}

TEST_CASE("what a failed device says comes with the end of the list", "[ring][progress][once]") {
  for (const bool kernel : {true, false}) {
    fake_end end;
    end.now = fake_end::fate::failed;
    ring_progress progress;
    (kernel ? progress.served : progress.awaited) = &end;
    CHECK_FALSE(progress.await(never));
    CHECK_FALSE(end.asked_by_waiter);
    CHECK_THROWS_MATCHES(progress.end(), ferry::device_error,
                         Catch::Matchers::Message("the device has failed"));
  }
}

TEST_CASE("a kernel that goes on is waited for, and another one after it", "[ring][progress][once]") {
  fake_end end;
  ring_progress progress;
  for (int kernel = 0; kernel < 2; ++kernel) {
    end.questions = 0;
    end.now = fake_end::fate::goes_on;
    progress.served = &end;
    // Its answer comes when it has been asked about, which takes a while.
    CHECK(progress.await([&] { return end.questions >= 3; }));
    end.now = fake_end::fate::ended;
    progress.end();
    CHECK_FALSE(end.asked_by_waiter);
  }
}

}  // namespace ferry_test::ring_progress_test
