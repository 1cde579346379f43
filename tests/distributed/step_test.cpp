// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <limits>

namespace ferry_test::step_test {

namespace {

template <class State>
bool same_state(const exec_space& exec, const State& state,
                ferry::optim::state<typename State::rule_type, float, host>& plain, const auto& table) {
  bool same = state.steps() == plain.steps() && state.skipped() == plain.skipped();
  const int ranks = table.comm().size();
  exec.fence("read");
  for (int r = 0; r < ranks; ++r) {
    const auto& shard = state.shard(r);
    for (std::int64_t i = 0; i < table.rows_of(r); ++i) {
      const auto row = static_cast<std::size_t>(table.global_row(r, i));
      for (int f = 0; f < plain.fields(); ++f)
        same = same && same_bits(shard.field(f).data() + static_cast<std::size_t>(i) * width,
                                 plain.field(f).data() + row * width, width);
      for (int f = 0; f < State::shard_type::row_fields; ++f)
        same = same && same_bits(shard.row_field_at(f).data() + i, plain.row_field_at(f).data() + row, 1);
      if (plain.row_steps().size() != 0)
        same = same && shard.row_steps().data()[i] == plain.row_steps().data()[row];
    }
  }
  return same;
}

/// Steps with a rule on a sharded table and on an ordinary one. `rule_for(rows)` may look at the table.
template <class T, class Grad = float, class RuleFor, class... Policies>
void compare(const RuleFor& rule_for, Policies... policies) {
  const watchdog guard("sharded steps");
  auto random = generator(21);
  const exec_space exec;
  for (const int ranks : {1, 2, 4, 8})
    for_each_sharding([&](auto spread) {
      const std::size_t rows = 1 + random() % 120;
      INFO(ranks << " ranks, " << rows << " rows, " << decltype(spread)::name);
      const auto& rule = rule_for(rows);
      ferry::tensor<T, host> table("w", rows, width);
      const auto comm = group_of(ranks);
      ferry::sharded_table<T, host, decltype(spread)> big("w", comm, rows, width, spread);
      ferry::init::uniform(exec, table, -1, 1, 5);
      ferry::init::uniform(exec, big, -1, 1, 5);
      auto plain = ferry::optim::make_state(rule, table);
      auto state = ferry::optim::make_state(rule, big);
      plain.set_seed(99);
      state.set_seed(99);
      for (int turn = 0; turn < 4; ++turn) {
        const batches<Grad> batch(random, ranks, rows, 40);
        ferry::step(exec, rule, table, plain, batch.rows, batch.whole, policies...).wait();
        if (turn == 2)  // by one thread for the group
          ferry::step(exec, rule, big, state, batch.rows, batch.whole, policies...).wait();
        else
          comm.run([&](int rank) {
            if (turn == 1) {
              const auto plan = ferry::make_plan(exec, batch.indices_of(rank), big);
              ferry::step(exec, rule, big, state, plan, batch.values_of(rank), policies...).wait();
            } else {
              ferry::step(exec, rule, big, state, batch.indices_of(rank), batch.values_of(rank), policies...)
                  .wait();
            }
          });
        REQUIRE(same_table(exec, big, table));
        REQUIRE(same_state(exec, state, plain, big));
      }
    });
}

}  // namespace

TEST_CASE("sharded steps give the bits of steps on an ordinary table", "[distributed]") {
  compare<float>([](std::size_t) { return ferry::optim::adam{.lr = 0.01}; });
  compare<float, double>([](std::size_t) { return ferry::optim::sgd{.lr = 0.1, .momentum = 0.9}; },
                         ferry::duplicates::mean{});
}

TEST_CASE("stochastic rounding of a shard goes by the rows of the whole table", "[distributed]") {
  compare<ferry::bhalf_t>([](std::size_t) { return ferry::optim::adam{.lr = 0.01}; },
                          ferry::rounding::stochastic{});
}

TEST_CASE("rules that see whole rows step on shards", "[distributed]") {
  compare<float>([](std::size_t) { return ferry::optim::rowwise_adagrad{.lr = 0.1}; });
}

TEST_CASE("rows of shards count their steps", "[distributed]") {
  compare<float>([](std::size_t) { return ferry::optim::adam{.lr = 0.01}; }, ferry::step_count::per_row{});
}

TEST_CASE("arrays of transforms have a number for each row of the whole table", "[distributed]") {
  std::vector<float> factors;
  std::vector<std::uint8_t> mask;
  auto random = generator(4);
  for (int i = 0; i < 200; ++i) {
    factors.push_back(static_cast<float>(random() % 16) / 8.0f);
    mask.push_back(random() % 4 == 0 ? 1 : 0);
  }
  std::vector<ferry::tensor<float, host>> arrays;
  std::vector<ferry::tensor<std::uint8_t, host>> masks;
  compare<float>([&](std::size_t rows) {
    arrays.push_back(
        tensor_of(std::vector<float>(factors.begin(), factors.begin() + static_cast<long>(rows)), 1));
    masks.push_back(
        tensor_of(std::vector<std::uint8_t>(mask.begin(), mask.begin() + static_cast<long>(rows)), 1));
    return ferry::optim::chain{ferry::optim::adam{.lr = 0.01}, ferry::optim::clip_value{0.5},
                               ferry::optim::row_rates(arrays.back()),
                               ferry::optim::frozen_rows(masks.back())};
  });
}

TEST_CASE("shards catch up with the steps that their rows missed", "[distributed]") {
  const watchdog guard("sharded catch_up");
  auto random = generator(31);
  const exec_space exec;
  const auto adam = ferry::optim::adam{.lr = 0.01};
  for (const int ranks : {1, 2, 8})
    for_each_sharding([&](auto spread) {
      const std::size_t rows = 1 + random() % 80;
      std::vector<float> factors(rows), long_factors(rows + 1, 1.0f);
      for (std::size_t row = 0; row < rows; ++row) factors[row] = 0.25f * static_cast<float>(row % 5);
      // Not every device reaches pageable memory.
      const auto rates = tensor_of(factors, 1), wrong_rates = tensor_of(long_factors, 1);
      const ferry::optim::chain rule{adam, ferry::optim::row_rates{rates}};
      const ferry::optim::chain wrong{adam, ferry::optim::row_rates{wrong_rates}};
      ferry::tensor<ferry::half_t, host> table("w", rows, width);
      const auto comm = group_of(ranks);
      ferry::sharded_table<ferry::half_t, host, decltype(spread)> big("w", comm, rows, width, spread);
      ferry::init::uniform(exec, table, -1, 1, 5);
      ferry::init::uniform(exec, big, -1, 1, 5);
      auto plain = ferry::optim::make_state<host>(rule, table, ferry::step_count::catch_up{});
      auto state = ferry::optim::make_state<host>(rule, big, ferry::step_count::catch_up{});
      for (int turn = 0; turn < 5; ++turn) {
        const batches<float> batch(random, ranks, rows, 20);
        ferry::step(exec, rule, table, plain, batch.rows, batch.whole, ferry::step_count::catch_up{}).wait();
        ferry::tensor<double, host> expected("expected", batch.rows.size(), width);
        ferry::gather(exec, rule, table, plain, batch.rows, expected).wait();
        comm.run([&](int rank) {
          const auto& mine = batch.indices_of(rank);
          ferry::step(exec, rule, big, state, mine, batch.values_of(rank), ferry::step_count::catch_up{})
              .wait();
          ferry::tensor<double, host> out("out", mine.size(), width);
          ferry::gather(exec, rule, big, state, mine, out).wait();
          expect(same_bits(out.data(), expected.data() + batch.at(rank) * width, out.size()),
                 "caught up rows");
        });
      }
      ferry::catch_up(exec, rule, table, plain, ferry::rounding::stochastic{}).wait();
      comm.run([&] {
        const std::string text =
            said<ferry::invalid_argument>([&] { ferry::catch_up(exec, wrong, big, state).detach(); });
        expect(text.starts_with("ferry::catch_up: row_rates was given "), text.c_str());
        ferry::catch_up(exec, rule, big, state, ferry::rounding::stochastic{}).wait();
      });
      REQUIRE(same_table(exec, big, table));
    });
}

TEST_CASE("a gradient that is not finite refuses or skips the step of all ranks", "[distributed]") {
  const watchdog guard("sharded nonfinite");
  const exec_space exec;
  const auto rule = ferry::optim::adam{};
  for_each_sharding_type([&](auto spread) {
    const auto comm = group_of(3);
    ferry::sharded_table<float, host, decltype(spread)> big("w", comm, 20, width, spread);
    ferry::tensor<float, host> table("w", 20, width);
    ferry::init::constant(exec, big, 1);
    ferry::init::constant(exec, table, 1);
    auto state = ferry::optim::make_state(rule, big);
    const std::vector<std::int64_t> rows{1, 5, 9};
    comm.run([&](int rank) {
      ferry::tensor<float, host> grads("g", 3, width);
      ferry::init::constant(exec, grads, 0.5);
      if (rank == 2) grads(1, 3) = std::numeric_limits<float>::infinity();
      ferry::step(exec, rule, big, state, rows, grads, ferry::nonfinite::skip{}).wait();
      expect(state.steps() == 0 && state.skipped() == 1, "skipped steps");
      auto ticket = ferry::step(exec, rule, big, state, rows, grads, ferry::nonfinite::reject{});
      const auto text = said<ferry::invalid_argument>([&] { ticket.wait(); });
      expect(text.find("inf in column 3 at position 1 of rank 2") != std::string::npos, text.c_str());
      expect(state.steps() == 0 && state.skipped() == 1, "refused steps");
    });
    REQUIRE(same_table(exec, big, table));
  });
}

}  // namespace ferry_test::step_test
