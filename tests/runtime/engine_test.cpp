// SPDX-License-Identifier: Apache-2.0
#include "support/block_uses.hpp"
#include "support/captured_stderr.hpp"
#include "support/manual_event.hpp"
#include "support/test.hpp"

#include <catch2/generators/catch_generators.hpp>

#include <exception>

namespace ferry_test::engine_test {

using ferry::detail::instance_id;

constexpr instance_id some_instance = (1ull << 60) + 1, other_instance = (1ull << 60) + 2;

/// A kernel that finds the index `row` at position 2.
struct find_bad_index {
  ferry::detail::report_writer report;
  std::int64_t row;

  KOKKOS_FUNCTION void operator()(std::int64_t) const {
    report.out_of_range(2, static_cast<std::uint64_t>(row));
  }
};

/// A verb in flight on an instance that is not there, whose kernels report to `report`.
ferry::detail::ticket_state_handle verb_of(ferry::detail::engine& home, instance_id who,
                                           const std::shared_ptr<ferry::detail::report_writer>& report) {
  auto state = home.take_ticket_state(true);
  state->who = who;
  state->keeper = ferry::detail::engine::get_on<exec_space>();
  state->find_error = home.find_error();
  state->sources.verb = "gather";
  state->sources.table.label = "table";
  state->sources.positions = 9;
  state->sources.signed_indices = true;
  state->sources.device = report;
  state->resources.push_back(report);
  return state;
}

/// The stream of an instance.
ferry::detail::stream_handle stream_of(instance_id who) { return reinterpret_cast<const void*>(who); }

/// A captured verb, whose instance has no work in flight. The graph holds the report.
struct captured_verb {
  std::shared_ptr<ferry::detail::engine> home = ferry::detail::engine::get_on<exec_space>();
  std::shared_ptr<ferry::detail::report_writer> graph = home->report();
  std::shared_ptr<int> marks = std::make_shared<int>(0);
  std::shared_ptr<bool> capturing = std::make_shared<bool>(false);

  ferry::ticket capture(instance_id who) {
    auto state = verb_of(*home, 0, graph);
    state->stream = stream_of(who);
    state->mark = [marks = marks, capturing = capturing]() -> ferry::detail::event_handle {
      if (*capturing) throw ferry::invalid_argument("still being captured");
      ++*marks;
      const auto now = std::make_shared<manual_event>();
      now->end();
      return now;
    };
    return ferry::ticket(std::move(state));
  }
  /// A launch that finds the index `row` at position 2.
  void launch(std::int64_t row) const {
    const exec_space exec;
    ferry::detail::launch(exec, "ferry_test::launch", 1, find_bad_index{*graph, row});
    exec.fence("ferry_test::launch");
  }
  /// The message of what the next wait on an instance throws besides its own error; empty for none.
  [[nodiscard]] std::string heard(instance_id who) const {
    return said<ferry::error>([&] {
      if (const auto error = home->take_finding(who, stream_of(who))) std::rethrow_exception(error);
    });
  }
};

TEST_CASE("a wait of another instance leaves the findings of detached work to its own", "[engine]") {
  const auto home = ferry::detail::engine::get_on<exec_space>();
  const captured_verb kernels;
  const auto work = std::make_shared<manual_event>();
  auto state = verb_of(*home, some_instance, kernels.graph);
  state->completion = work;
  ferry::ticket(std::move(state)).detach();
  kernels.launch(77);
  CHECK(kernels.heard(some_instance).empty());  // in flight: the report may still change
  work->end();
  CHECK(kernels.heard(other_instance).empty());
  CHECK(has(kernels.heard(some_instance), "index 77 at position 2"));
  CHECK(kernels.heard(some_instance).empty());
  CHECK(work->waits == 0);
}

TEST_CASE("the findings of launches come with a wait of the captured instance, once for each launch",
          "[engine]") {
  captured_verb verb;
  const bool destroyed = GENERATE(false, true);
  *verb.capturing = true;
  if (auto ticket = verb.capture(some_instance); !destroyed) ticket.detach();
  *verb.capturing = false;
  CHECK(verb.heard(some_instance).empty());
  CHECK(*verb.marks == 0);  // without a finding nobody waits
  for (std::int64_t row = 5; row < 8; ++row) {
    verb.launch(row);
    CHECK(verb.heard(other_instance).empty());
    CHECK(has(verb.heard(some_instance), "ferry::gather: 1 of 9 indices are outside of 'table'"));
    CHECK(verb.heard(some_instance).empty());
  }
  CHECK(*verb.marks == 3);
  verb.launch(9);
  *verb.capturing = true;  // of the next graph: the finding waits for its end
  CHECK(verb.heard(some_instance).empty());
  *verb.capturing = false;
  CHECK(has(verb.heard(some_instance), "index 9 at position 2"));
  // The last launch of a graph is heard of after the graph; then its report goes back.
  verb.launch(11);
  const std::weak_ptr<ferry::detail::report_writer> report = verb.graph;
  verb.graph = nullptr;
  CHECK_FALSE(report.expired());
  CHECK(has(verb.heard(some_instance), "index 11 at position 2"));
  CHECK(report.expired());
}

TEST_CASE("threads that wait share the findings of launches", "[engine]") {
  captured_verb verb;
  verb.capture(some_instance).detach();
  for (int turn = 0; turn < 50; ++turn) {
    verb.launch(100 + turn);
    std::vector<std::string> texts(4);
    std::vector<std::thread> team;
    for (std::string& text : texts) team.emplace_back([&] { text = verb.heard(some_instance); });
    for (std::thread& thread : team) thread.join();
    int hits = 0;
    for (const std::string& text : texts) hits += text.empty() ? 0 : 1;
    CHECK(hits == 1);
  }
}

TEST_CASE("scratch memory of detached work goes back at once, all else when the work has ended", "[engine]") {
  const auto engine = ferry::detail::engine::get_on<exec_space>();
  engine->reap();
  ferry::trim();
  const auto never = [](ferry::detail::event&) { FAIL("nothing to come after"); };
  const auto work = std::make_shared<manual_event>();
  const auto owner = std::make_shared<int>(3);
  constexpr std::size_t size = 100000;
  constexpr ferry::detail::instance_id who = 1ull << 60;
  std::shared_ptr<void> scratch = engine->device_scratch(size, who, never);
  void* const block = scratch.get();
  note_use(scratch, work, who);
  scratch.reset();
  {
    auto detached = engine->take_ticket_state(true);
    detached->completion = work;
    detached->who = who;
    detached->resources.push_back(owner);
    engine->keep(std::move(detached));
  }
  CHECK(engine->device_scratch(size).get() != block);
  CHECK(engine->device_scratch(size, who, never).get() == block);
  engine->reap();
  CHECK(owner.use_count() == 2);
  work->end();
  engine->reap();
  CHECK(owner.use_count() == 1);
  CHECK(ferry::trim() > 0);
}

}  // namespace ferry_test::engine_test
