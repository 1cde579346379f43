// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/manual_event.hpp"

#include <catch2/catch_test_macros.hpp>

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace ferry_test::future_test {

namespace {

/// A result that tells whether its work had ended when it was freed.
struct watched {
  std::shared_ptr<manual_event> work;
  bool* freed_in_flight;
  watched(std::shared_ptr<manual_event> event, bool* flag) : work(std::move(event)), freed_in_flight(flag) {}
  watched(watched&&) = default;
  watched& operator=(watched&&) = default;
  ~watched() {
    if (work != nullptr && work->waits == 0) *freed_in_flight = true;
  }
};

struct scripted {
  std::shared_ptr<manual_event> work = std::make_shared<manual_event>();
  bool freed_in_flight = false;

  /// Work that ends as soon as it is waited for.
  ferry::future<watched> start(bool fails = false) {
    ferry::detail::ticket_state_handle state(new ferry::detail::ticket_state);
    work->end();
    state->completion = work;
    if (fails)
      state->find_error = [](ferry::detail::ticket_state&) {
        return std::make_exception_ptr(ferry::out_of_range("row 7 is not there"));
      };
    return {ferry::ticket(std::move(state)), watched(work, &freed_in_flight)};
  }
};

}  // namespace

TEST_CASE("a future is moved, not copied", "[future]") {
  using one = ferry::future<int>;
  STATIC_CHECK_FALSE(std::is_copy_constructible_v<one>);
  STATIC_CHECK_FALSE(std::is_copy_assignable_v<one>);
  STATIC_CHECK(std::is_nothrow_move_constructible_v<one>);
  one nothing;
  CHECK(nothing.ready());
  nothing.wait();
  CHECK_THROWS_AS(nothing.get(), ferry::invalid_argument);
}

TEST_CASE("get waits and hands the result out once", "[future]") {
  scripted script;
  auto future = script.start();
  CHECK(script.work->waits == 0);
  {
    const auto result = future.get();
    CHECK(script.work->waits == 1);
    CHECK(result.work == script.work);
  }
  CHECK_THROWS_AS(future.get(), ferry::invalid_argument);
  CHECK_NOTHROW(future.wait());
  auto moved = script.start();
  const auto result = std::move(moved).get();
  CHECK(result.work == script.work);
  CHECK_FALSE(script.freed_in_flight);
}

TEST_CASE("a future gives nothing of work that failed, and says so each time", "[future]") {
  scripted script;
  auto future = script.start(true);
  CHECK_THROWS_AS(future.wait(), ferry::out_of_range);
  CHECK_THROWS_AS(future.get(), ferry::out_of_range);
  CHECK_THROWS_AS(future.get(), ferry::out_of_range);
  auto moved = std::move(future);
  CHECK_THROWS_AS(moved.get(), ferry::out_of_range);
  CHECK_THROWS_AS(future.get(), ferry::invalid_argument);
}

TEST_CASE("the result is freed after the work has ended", "[future]") {
  scripted dropped, replaced, script;
  { const auto future = dropped.start(); }
  CHECK(dropped.work->waits == 1);
  CHECK_FALSE(dropped.freed_in_flight);
  auto future = replaced.start();
  future = script.start();
  CHECK(replaced.work->waits == 1);
  CHECK_FALSE(replaced.freed_in_flight);
  CHECK(script.work->waits == 0);
  auto& self = future;
  future = std::move(self);
  CHECK(script.work->waits == 0);
  CHECK(future.get().work == script.work);
}

TEST_CASE("then orders an instance after the work and leaves the result", "[future]") {
  scripted script;
  auto future = script.start();
  const auto result = future.then(Kokkos::DefaultHostExecutionSpace{}).get();
  CHECK(script.work->waits == 2);
}

}  // namespace ferry_test::future_test
