// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <limits>

namespace ferry_test::step_test {

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
  for_each_sharding([&](auto spread) {
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
