// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

#include <ferry/bags.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// Steps of all rows of sharded tables have the bits of steps of ordinary tables.
namespace ferry_test::dense_step_test {

using Catch::Matchers::ContainsSubstring;

namespace {

/// The rows of a rank out of those of the whole table.
template <class Table>
ferry::tensor<float, host> part_of(const Table& table, const ferry::tensor<float, host>& whole, int rank) {
  ferry::tensor<float, host> part("part", table.rows_of(rank), width);
  for (std::int64_t i = 0; i < table.rows_of(rank); ++i)
    for (std::size_t c = 0; c < width; ++c)
      part.data()[static_cast<std::size_t>(i) * width + c] =
          whole.data()[static_cast<std::size_t>(table.global_row(rank, i)) * width + c];
  return part;
}

template <class RuleFor, class... Policies>
void compare(const RuleFor& rule_for, Policies... policies) {
  const watchdog guard("sharded steps of all rows");
  auto random = generator(31);
  const exec_space exec;
  for (const int ranks : {1, 3})
    for_each_sharding([&](auto spread) {
      const std::size_t rows = 1 + random() % 120;
      INFO(ranks << " ranks, " << rows << " rows, " << decltype(spread)::name);
      const auto& rule = rule_for(rows);
      ferry::tensor<float, host> table("w", rows, width);
      const auto comm = group_of(ranks);
      ferry::sharded_table<float, host, decltype(spread)> big("w", comm, rows, width, spread);
      ferry::init::uniform(exec, table, -1, 1, 5);
      ferry::init::uniform(exec, big, -1, 1, 5);
      auto plain = ferry::optim::make_state(rule, table);
      auto state = ferry::optim::make_state(rule, big);
      for (int turn = 0; turn < 3; ++turn) {
        const auto grads = tensor_of(values<float>(random, rows * width), width);
        ferry::step(exec, rule, table, plain, grads, policies...).wait();
        if (turn == 1)  // by one thread for the group
          ferry::step(exec, rule, big, state, grads, policies...).wait();
        else
          comm.run([&](int rank) {
            ferry::step(exec, rule, big, state, part_of(big, grads, rank), policies...).wait();
          });
        REQUIRE(same_table(exec, big, table));
        REQUIRE(state.steps() == plain.steps());
      }
    });
}

}  // namespace

TEST_CASE("sharded steps of all rows give the bits of an ordinary table", "[distributed][dense]") {
  compare([](std::size_t) { return ferry::optim::adam{.lr = 0.01}; }, ferry::step_count::per_row{});
  ferry::tensor<float, host> factors("factors", 120);
  for (std::size_t r = 0; r < 120; ++r) factors.data()[r] = 0.5f + static_cast<float>(r) * 0.01f;
  compare([&](std::size_t rows) {
    return ferry::optim::chain(ferry::optim::sgd{.lr = 0.1}, ferry::optim::row_rates(factors.first(rows)));
  });
}

TEST_CASE("a sharded step of all rows is refused by all ranks or by none", "[distributed][dense]") {
  const watchdog guard("refused sharded steps of all rows");
  auto random = generator(32);
  const exec_space exec;
  const ferry::optim::sgd rule{.lr = 0.1};
  const auto comm = group_of(2);
  ferry::sharded_table<float, host> big("w", comm, 7, width);
  ferry::init::constant(exec, big, 1);
  auto state = ferry::optim::make_state(rule, big);
  ferry::tensor<float, host> before("before", 7, width);
  ferry::copy(exec, big, before).wait();
  auto grads = tensor_of(values<float>(random, 7 * width), width);
  grads.data()[3 * width] = std::numeric_limits<float>::quiet_NaN();
  for (const bool rejects : {true, false})
    comm.run([&](int rank) {
      const auto part = part_of(big, grads, rank);
      const auto text = said<ferry::invalid_argument>([&] {
        if (rejects)
          ferry::step(exec, rule, big, state, part, ferry::nonfinite::reject{}).wait();
        else
          ferry::step(exec, rule, big, state, part, ferry::nonfinite::skip{}).wait();
      });
      expect(rejects == has(text, "nonfinite::reject forbids"), "the gradient that is not a number");
    });
  CHECK(state.steps() == 0);
  CHECK(state.skipped() == 1);
  CHECK(same_table(exec, big, before));
  CHECK_THAT(said<ferry::error>([&] {
               comm.run([&] {
                 const ferry::tensor<float, host> part("part", 4, width);  // rank 1 owns 3
                 ferry::step(exec, rule, big, state, part).wait();
               });
             }),
             ContainsSubstring("without indices 'part' [4 x 6]") && ContainsSubstring("the shard of rank 1"));
  CHECK(same_table(exec, big, before));
}

TEST_CASE("a step refuses a state whose shards count different steps", "[distributed]") {
  const watchdog guard("shards at different steps");
  const exec_space exec;
  const ferry::optim::adam rule{.lr = 0.1};
  const auto comm = group_of(3);
  ferry::sharded_table<float, host> big("w", comm, 7, width);
  ferry::init::constant(exec, big, 1);
  std::vector<decltype(ferry::optim::make_state(rule, big))> states;
  auto& state = states.emplace_back(ferry::optim::make_state(rule, big));
  ferry::tensor<float, host> before("before", 7, width), grads("grads", 7, width), pooled("pooled", 1, width);
  ferry::copy(exec, big, before).wait();
  ferry::init::constant(exec, grads, 1);
  ferry::init::constant(exec, pooled, 1);
  const std::vector<std::int64_t> indices{0, 1, 2, 3, 4, 5, 6};
  state.set_steps(4);
  state.shard(1).set_steps(5);
  const auto refused = [](const std::string& verb, const auto& call) {
    CHECK_THAT(said<ferry::invalid_argument>(call),
               ContainsSubstring("ferry::" + verb +
                                 ": the shard of rank 0 of the state counts 4 steps and "
                                 "that of rank 1 counts 5"));
  };
  refused("step", [&] { ferry::step(exec, rule, big, state, grads).wait(); });
  refused("step", [&] { ferry::step(exec, rule, big, state, indices, grads).wait(); });
  refused("step_bags", [&] { ferry::step_bags(exec, rule, big, state, indices, 7, pooled).wait(); });
  refused("step_bags", [&] {
    ferry::step_bags(exec, rule, ferry::for_each_table(big), states, indices, 7, pooled).wait();
  });
  refused("catch_up", [&] { ferry::catch_up(exec, rule, big, state).wait(); });
  refused("sharded_state::steps", [&] { static_cast<void>(state.steps()); });
  CHECK(same_table(exec, big, before));
  state.set_steps(5);
  ferry::step(exec, rule, big, state, grads).wait();
  CHECK(state.steps() == 6);
}

}  // namespace ferry_test::dense_step_test
