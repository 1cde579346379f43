// SPDX-License-Identifier: Apache-2.0
#include "support/captured_stderr.hpp"
#include "support/manual_event.hpp"
#include "support/test.hpp"

#include <catch2/generators/catch_generators.hpp>

#include <exception>

namespace ferry_test::ticket_test {

/// Work that ends when the test says so, and counts who waited for it.
class scripted_event final : public ferry::detail::event {
 public:
  void wait() override {
    ++waits;
    ended = true;
  }
  [[nodiscard]] bool ready() override { return ended; }
  bool ended = false;
  int waits = 0;
};

/// A keeper of detached work, as an engine is.
struct scripted_keeper final : ferry::detail::ticket_state_keeper {
  void keep(ferry::detail::ticket_state_handle work) noexcept override { tickets.push_back(std::move(work)); }
  void add_finding(ferry::detail::instance_id who, const std::exception_ptr& error) noexcept override {
    findings.add(who, error);
  }
  std::exception_ptr take_finding(ferry::detail::instance_id who,
                                  ferry::detail::stream_handle) noexcept override {
    return findings.take(who);
  }
  std::vector<ferry::detail::ticket_state_handle> tickets;
  ferry::detail::unheard_findings findings;
};

/// The pieces of a ticket, kept by the test.
struct scripted_work {
  std::shared_ptr<scripted_event> event = std::make_shared<scripted_event>();
  std::shared_ptr<int> resource = std::make_shared<int>(0);
  bool fails = false;
  int verdicts = 0;
  int undone = 0;
  std::shared_ptr<scripted_keeper> keeper = std::make_shared<scripted_keeper>();

  ferry::ticket start(bool with_error) {
    fails = with_error;
    ferry::detail::ticket_state_handle state(new ferry::detail::ticket_state);
    state->completion = event;
    state->resources.push_back(resource);
    state->ends = {std::shared_ptr<void>(this, [](void*) {}), [](void* owner) { ++self(owner).undone; },
                   nullptr};
    state->sources.verb = reinterpret_cast<const char*>(this);
    state->find_error = [](ferry::detail::ticket_state& state_record) -> std::exception_ptr {
      auto& work = *reinterpret_cast<scripted_work*>(const_cast<char*>(state_record.sources.verb));
      ++work.verdicts;
      return work.fails ? std::make_exception_ptr(ferry::out_of_range("row 7 is not there")) : nullptr;
    };
    state->keeper = keeper;
    return ferry::ticket(std::move(state));
  }

  static scripted_work& self(void* owner) { return *static_cast<scripted_work*>(owner); }
};

TEST_CASE("a ticket is moved, not copied", "[ticket]") {
  STATIC_CHECK_FALSE(std::is_copy_constructible_v<ferry::ticket>);
  STATIC_CHECK(std::is_nothrow_move_constructible_v<ferry::ticket>);
  ferry::ticket nothing;
  CHECK(nothing.ready());
  nothing.wait();
  nothing.then(exec_space{});
  nothing.detach();
}

TEST_CASE("wait waits once, and lets go of the work's resources", "[ticket]") {
  scripted_work work;
  auto ticket = work.start(false);
  CHECK_FALSE(ticket.ready());
  CHECK(work.resource.use_count() == 2);
  ticket.wait();
  CHECK(work.event->waits == 1);
  CHECK(work.verdicts == 1);
  CHECK(work.undone == 0);
  CHECK(work.resource.use_count() == 1);
  CHECK(ticket.ready());
  ticket.wait();
  CHECK(work.event->waits == 1);
  CHECK(work.verdicts == 1);
}

TEST_CASE("wait throws what was found, once, and takes back what was recorded", "[ticket]") {
  scripted_work work;
  auto ticket = work.start(true);
  CHECK_THROWS_AS(ticket.wait(), ferry::out_of_range);
  CHECK(work.undone == 1);
  CHECK(work.resource.use_count() == 1);
  CHECK_NOTHROW(ticket.wait());
  CHECK(work.undone == 1);
}

TEST_CASE("ready tells without waiting", "[ticket]") {
  scripted_work work;
  auto ticket = work.start(true);
  CHECK_FALSE(ticket.ready());
  work.event->ended = true;
  CHECK(ticket.ready());
  CHECK(work.event->waits == 0);
  CHECK(work.verdicts == 0);
  CHECK_THROWS_AS(ticket.wait(), ferry::out_of_range);
}

TEST_CASE("the destructor waits, and says on stderr what nobody waited for", "[ticket]") {
  scripted_work good, bad;
  captured_stderr output;
  {
    const auto first = good.start(false);
    const auto second = bad.start(true);
  }
  const auto text = output.text();
  CHECK(good.event->waits == 1);
  CHECK(bad.event->waits == 1);
  CHECK(bad.undone == 1);
  CHECK_THAT(text, ContainsSubstring("row 7 is not there"));
  CHECK(text.find("ferry:") == text.rfind("ferry:"));  // the good one is silent
}

TEST_CASE("a ticket that is assigned to ends first", "[ticket]") {
  scripted_work first, second;
  auto ticket = first.start(false);
  auto successor = second.start(false);
  ticket = std::move(successor);
  CHECK(first.event->waits == 1);
  CHECK(second.event->waits == 0);
  CHECK(successor.ready());
  ticket.wait();
  CHECK(second.event->waits == 1);
  auto moved = first.start(false);
  auto target = std::move(moved);
  moved.wait();
  CHECK(first.event->waits == 1);
  target.wait();
  CHECK(first.event->waits == 2);
  auto& same = second;
  auto repeat = same.start(false);
  auto& self = repeat;
  repeat = std::move(self);
  CHECK(second.event->waits == 1);
}

TEST_CASE("detached work keeps its resources until it ends", "[ticket]") {
  scripted_work work;
  auto ticket = work.start(true);
  ticket.detach();
  CHECK(work.event->waits == 0);
  CHECK(work.verdicts == 0);
  REQUIRE(work.keeper->tickets.size() == 1);
  CHECK(work.resource.use_count() == 2);
  CHECK(work.keeper->tickets[0]->completion == work.event);
  CHECK(ticket.ready());
  ticket.wait();
  CHECK(work.event->waits == 0);
  work.keeper->tickets.clear();
  CHECK(work.resource.use_count() == 1);
  // Nothing but the error needs to be kept of work that has ended.
  scripted_work over;
  over.event->ended = true;
  over.start(false).detach();
  CHECK(over.verdicts == 1);
  CHECK(over.keeper->tickets.empty());
  CHECK(over.resource.use_count() == 1);
  CHECK(over.keeper->take_finding(0, nullptr) == nullptr);
  over.start(true).detach();
  CHECK(over.undone == 0);
  CHECK(over.keeper->take_finding(0, nullptr) != nullptr);
  CHECK(over.keeper->take_finding(0, nullptr) == nullptr);
  over.start(true).drop();
  CHECK(over.verdicts == 2);
  CHECK(over.keeper->take_finding(0, nullptr) == nullptr);
}

TEST_CASE("a wait throws its own error, then one of detached work", "[ticket]") {
  scripted_work work;
  work.event->ended = true;
  work.start(true).detach();
  auto next = work.start(true);
  CHECK(next.ready());
  CHECK(next.ready());
  CHECK_THROWS_AS(next.wait(), ferry::out_of_range);
  CHECK(work.undone == 1);
  next.wait();
  auto heard = work.start(false);
  CHECK(heard.hear() != nullptr);
  CHECK(heard.hear() == nullptr);
  work.start(true).detach();
  heard = work.start(false);
  heard.join();
  auto last = work.start(false);
  CHECK_THROWS_AS(last.wait(), ferry::out_of_range);
  work.start(false).wait();
}

TEST_CASE("work that is detached after its engine, in a hook of finalize's, has ended when it lets go",
          "[ticket]") {
  scripted_work work;
  const bool fails = GENERATE(false, true);
  auto ticket = work.start(fails);
  work.keeper = nullptr;
  captured_stderr output;
  ticket.detach();
  CHECK(work.resource.use_count() == 1);
  CHECK(work.event->waits == 1);
  CHECK(count_of(output.text(), "row 7 is not there") == (fails ? 1 : 0));
}

TEST_CASE("then orders without taking the errors away", "[ticket]") {
  scripted_work work;
  auto ticket = work.start(true);
  ticket.then(Kokkos::DefaultHostExecutionSpace{});
  CHECK(work.event->waits == 1);
  CHECK(work.verdicts == 0);
  CHECK_THROWS_AS(ticket.wait(), ferry::out_of_range);
}

TEST_CASE("verbs give tickets that can be used in every way", "[ticket]") {
  const exec_space exec;
  const auto table = make<ferry::mapped_space>("table", 3, 1, std::vector<float>{5, 6, 7});
  ferry::tensor<float, ferry::device_space> batch("batch", 2, 1);
  const std::vector<std::int64_t> good{2, 0}, bad{2, 3};
  auto ticket = ferry::gather(exec, table, good, batch);
  ticket.then(Kokkos::DefaultHostExecutionSpace{}).then(exec).wait();
  CHECK(take(batch) == std::vector<float>{7, 5});
  ferry::gather(exec, table, bad, batch).detach();
  exec.fence("ferry_test::detached");
  captured_stderr output;
  { const auto lost = ferry::gather(exec, table, bad, batch); }
  CHECK_THAT(output.text(), ContainsSubstring("ferry::gather") &&
                                ContainsSubstring("index 3 at position 1") &&
                                ContainsSubstring("'table' [3 x 1]"));
  for (int i = 0; i < 300; ++i) ferry::gather(exec, table, good, batch).detach();
  exec.fence("ferry_test::detached");
  CHECK_THROWS_AS(ferry::gather(exec, table, good, batch).wait(), ferry::out_of_range);
  CHECK(take(batch) == std::vector<float>{7, 5});
}

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

}  // namespace ferry_test::ticket_test
