// SPDX-License-Identifier: Apache-2.0
// The findings of detached work: each is thrown or printed, and only once.
#include "support/captured_stderr.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>
#include <ferry/int8.hpp>

#include <catch2/generators/catch_generators.hpp>

#include <mutex>
#include <set>

namespace ferry_test::detached_test {

struct small_table {
  ferry::tensor<float, ferry::mapped_space> table =
      make<ferry::mapped_space>("table", 3, 1, std::vector<float>{5, 6, 7});
  ferry::tensor<float, ferry::device_space> batch{"batch", 2, 1};
  std::vector<std::int64_t> good{2, 0};

  ferry::ticket gather(const exec_space& exec, std::int64_t row) {
    return ferry::gather(exec, table, std::vector<std::int64_t>{row, 0}, batch);
  }
};

/// The message of the error that a wait on the instance throws; empty for none.
std::string heard(const exec_space& exec, small_table& small) {
  return said<ferry::error>([&] { small.gather(exec, 0).wait(); });
}

TEST_CASE("the error of a detached verb comes with the next wait on its instance, once", "[detached]") {
  const exec_space exec;
  small_table small;
  REQUIRE(heard(exec, small).empty());
  small.gather(exec, 3).detach();
  small.gather(exec, 1).detach();
  const std::string text = heard(exec, small);
  CHECK(has(text, "ferry::gather: 1 of 2 indices are outside of 'table' [3 x 1]"));
  CHECK(has(text, "index 3 at position 0"));
  CHECK(heard(exec, small).empty());
  // In the order of the work, after the error of the waiting ticket.
  small.gather(exec, 4).detach();
  small.gather(exec, 5).detach();
  CHECK(has(said<ferry::out_of_range>([&] { small.gather(exec, 6).wait(); }), "index 6 at"));
  CHECK(has(heard(exec, small), "index 4 at"));
  CHECK(has(heard(exec, small), "index 5 at"));
  CHECK(heard(exec, small).empty());
}

TEST_CASE("ready() leaves the error to wait() and detach()", "[detached]") {
  const exec_space exec;
  small_table small;
  auto ticket = small.gather(exec, 7);
  exec.fence("ferry_test::detached");
  CHECK(ticket.ready());
  CHECK(ticket.ready());
  ticket.detach();
  CHECK(ticket.ready());
  CHECK(has(heard(exec, small), "index 7 at"));
  ticket = small.gather(exec, 8);
  while (!ticket.ready()) {
  }
  CHECK_THROWS_AS(ticket.wait(), ferry::out_of_range);
  CHECK(heard(exec, small).empty());
}

TEST_CASE("a detached step with a bad index is heard and stays counted", "[detached]") {
  const exec_space exec;
  auto table = make<ferry::mapped_space>("weights", 4, 2, std::vector<float>(8, 1));
  const auto grads = make<ferry::device_space>("grads", 3, 2, std::vector<float>(6, 1));
  const ferry::optim::sgd rule{.lr = 0.5};
  auto state = ferry::optim::make_state(rule, table);
  const bool planned = GENERATE(false, true);
  const std::vector<std::int32_t> indices{0, 9, 2};
  if (planned)
    ferry::step(exec, rule, table, state, ferry::make_plan(exec, indices, 4), grads).detach();
  else
    ferry::step(exec, rule, table, state, indices, grads).detach();
  small_table small;
  const std::string text = heard(exec, small);
  CHECK(has(text, "ferry::step: 1 of 3 indices are outside of 'weights' [4 x 2]"));
  CHECK(has(text, "index 9 at position 1"));
  CHECK(heard(exec, small).empty());
  CHECK(state.steps() == 1);
}

TEST_CASE("all kinds of findings are heard of", "[detached]") {
  const exec_space exec;
  small_table small;
  auto table = make<ferry::device_space>("table", 3, 1, std::vector<float>{1, 2, 3});
  const auto values = make<ferry::device_space>("values", 2, 1, std::vector<float>{1, 1});
  const std::vector<std::int64_t> twice{1, 1};
  ferry::scatter(exec, table, twice, values, ferry::duplicates::reject{}).detach();
  CHECK(has(heard(exec, small), "named more than once"));
  const ferry::optim::sgd rule;
  auto state = ferry::optim::make_state(rule, table);
  const auto bad =
      make<ferry::device_space>("bad", 2, 1, std::vector<float>{1, std::numeric_limits<float>::infinity()});
  ferry::step(exec, rule, table, state, small.good, bad, ferry::nonfinite::reject{}).detach();
  CHECK(has(heard(exec, small), "nonfinite::reject"));
  ferry::step(exec, rule, table, state, small.good, bad, ferry::nonfinite::skip{}).detach();
  ferry::gather(exec, table, std::vector<int>{5, -1}, small.batch, ferry::bounds::skip{}).detach();
  CHECK(heard(exec, small).empty());
  ferry::rowwise_int8_tensor<ferry::device_space> codes("codes", 3, 1);
  ferry::quantize(exec, table, codes).wait();
  ferry::gather(exec, codes, std::vector<int>{5, 1}, small.batch).detach();
  CHECK(has(heard(exec, small), "index 5 at"));
  ferry::scatter(exec, codes, std::vector<int>{5, 1}, values).detach();
  CHECK(has(heard(exec, small), "index 5 at"));
  ferry::scatter(exec, codes, ferry::make_plan(exec, std::vector<int>{6, 1}, 3), values,
                 ferry::duplicates::sum{})
      .detach();
  CHECK(has(heard(exec, small), "index 6 at"));
  ferry::gather_bags(exec, table, std::vector<int>{1, 7}, std::vector<int>{0, 2}, small.batch.first(1))
      .detach();
  CHECK(has(heard(exec, small), "index 7 at"));
  CHECK(heard(exec, small).empty());
}

TEST_CASE("a future keeps its result when it hears of detached work", "[detached]") {
  const exec_space exec;
  small_table small;
  auto rows = ferry::gather<ferry::pinned_space>(exec, small.table, small.good);
  small.gather(exec, 3).detach();
  exec.fence();  // the detached gather comes after that of the future
  CHECK(has(said<ferry::out_of_range>([&] { static_cast<void>(rows.get()); }), "index 3 at"));
  CHECK(take(rows.get()) == std::vector<float>{7, 5});
  auto bad = ferry::gather<ferry::pinned_space>(exec, small.table, std::vector<int>{9});
  CHECK_THROWS_AS(bad.wait(), ferry::out_of_range);
  CHECK_THROWS_AS(bad.get(), ferry::out_of_range);
  CHECK(heard(exec, small).empty());
}

TEST_CASE("destructors leave the errors of other work to a wait", "[detached]") {
  const exec_space exec;
  small_table small;
  captured_stderr output;
  small.gather(exec, 3).detach();
  { const auto ended = small.gather(exec, 1); }
  { const auto lost = small.gather(exec, 4); }
  const std::string text = output.text();
  CHECK(count_of(text, "index 4 at") == 1);
  CHECK(count_of(text, "index 3 at") == 0);
  CHECK(has(heard(exec, small), "index 3 at"));
  CHECK(heard(exec, small).empty());
}

TEST_CASE("what nobody waits for is printed when there is too much of it", "[detached]") {
  const exec_space exec;
  small_table small;
  captured_stderr output;
  for (std::int64_t i = 0; i < 100; ++i) small.gather(exec, 1000 + i).detach();
  std::set<std::string> messages;
  for (std::string message = heard(exec, small); !message.empty(); message = heard(exec, small))
    messages.insert(message);
  const std::string text = output.text();
  CHECK(messages.size() == 64);
  CHECK(count_of(text, "nobody waited for this error") == 36);
  for (int i = 0; i < 100; ++i) {
    const std::string row = "index " + std::to_string(1000 + i) + " at";
    int thrown = 0;
    for (const auto& message : messages) thrown += count_of(message, row);
    CHECK(count_of(text, row) + thrown == 1);
  }
}

TEST_CASE("threads that wait on one instance share its findings", "[detached]") {
  const exec_space exec;
  constexpr int threads = 4, turns = 200;
  std::mutex guard;
  std::multiset<std::string> messages;
  const auto note = [&](const std::string& message) {
    if (message.empty()) return false;
    const std::lock_guard lock(guard);
    messages.insert(message.substr(message.find("index")));
    return true;
  };
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t)
    team.emplace_back([&, t] {
      small_table small;
      for (int i = 0; i < turns; ++i) {
        small.gather(exec, 1000 * (t + 1) + i).detach();
        while (note(heard(exec, small)) && i % 2 == 0) {
        }
      }
    });
  for (auto& thread : team) thread.join();
  small_table small;
  while (note(heard(exec, small))) {
  }
  CHECK(messages.size() == threads * turns);
  for (int t = 0; t < threads; ++t)
    for (int i = 0; i < turns; ++i)
      CHECK(messages.count("index " + std::to_string(1000 * (t + 1) + i) + " at position 0") == 1);
}

}  // namespace ferry_test::detached_test
