// SPDX-License-Identifier: Apache-2.0
#include "support/manual_event.hpp"

#include <ferry/ferry.hpp>
#include <ferry/runtime/ticket.hpp>

#include <catch2/catch_test_macros.hpp>

#include <exception>
#include <memory>
#include <vector>

namespace ferry_test::captured_ticket_test {

namespace {

/// A verb in a graph, played by the test.
struct captured_work {
  std::vector<std::shared_ptr<manual_event>> marks;
  std::shared_ptr<int> resource = std::make_shared<int>(0);
  bool capturing = false;
  bool fails = false;
  int undone = 0;

  ferry::ticket capture() {
    ferry::detail::ticket_state_handle state(new ferry::detail::ticket_state);
    state->resources.push_back(resource);
    state->mark = [this]() -> ferry::detail::event_handle {
      if (capturing) throw ferry::invalid_argument("still being captured");
      marks.push_back(std::make_shared<manual_event>());
      marks.back()->end();
      return marks.back();
    };
    state->ends = {std::shared_ptr<void>(this, [](void*) {}),
                   [](void* owner) { ++static_cast<captured_work*>(owner)->undone; }, nullptr};
    state->find_error = [](ferry::detail::ticket_state& state_record) -> std::exception_ptr {
      auto& work = *static_cast<captured_work*>(state_record.ends.owner.get());
      if (!work.fails) return nullptr;
      work.fails = false;
      return std::make_exception_ptr(ferry::out_of_range("row 7 is not there"));
    };
    state->keeper = keeper;
    return ferry::ticket(std::move(state));
  }

  struct counting_keeper final : ferry::detail::ticket_state_keeper {
    void keep(ferry::detail::ticket_state_handle) noexcept override { ++tickets; }
    void add_finding(ferry::detail::instance_id, const std::exception_ptr&) noexcept override { ++tickets; }
    std::exception_ptr take_finding(ferry::detail::instance_id,
                                    ferry::detail::stream_handle) noexcept override {
      return nullptr;
    }
    int tickets = 0;
  };
  std::shared_ptr<counting_keeper> keeper = std::make_shared<counting_keeper>();
};

}  // namespace

TEST_CASE("a captured verb is waited for after each launch of its graph", "[captured_ticket]") {
  captured_work work;
  auto ticket = work.capture();
  for (int launch = 1; launch <= 3; ++launch) {
    work.fails = launch == 2;
    if (launch == 2)
      CHECK_THROWS_AS(ticket.wait(), ferry::out_of_range);
    else
      CHECK_NOTHROW(ticket.wait());
    REQUIRE(static_cast<int>(work.marks.size()) == launch);
    CHECK(work.marks.back()->waits == 1);
  }
  CHECK(work.undone == 0);
  CHECK(work.resource.use_count() == 2);
  CHECK(ticket.ready());
  ticket.then(Kokkos::DefaultHostExecutionSpace{});
  CHECK(work.marks.back()->waits == 1);
}

TEST_CASE("a captured verb can't be waited for before its graph is there", "[captured_ticket]") {
  captured_work work;
  work.capturing = true;
  {
    auto ticket = work.capture();
    CHECK_THROWS_AS(ticket.wait(), ferry::invalid_argument);
    CHECK_THROWS_AS(ticket.then(Kokkos::DefaultHostExecutionSpace{}), ferry::invalid_argument);
  }
  CHECK(work.resource.use_count() == 1);
  CHECK(work.keeper->tickets == 1);  // of the destroyed ticket: launches may find something
  work.capture().detach();
  CHECK(work.keeper->tickets == 2);
  auto ticket = work.capture();
  ticket = work.capture();
  CHECK(work.keeper->tickets == 3);
  CHECK(work.marks.empty());
}

}  // namespace ferry_test::captured_ticket_test
