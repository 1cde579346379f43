// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include "support/folder.hpp"

#include <ferry/io.hpp>

namespace ferry_test::checkpoint_test {

namespace {

/// Trains on `ranks`, saves, loads into a table on `later` ranks with another sharding, and trains on; an
/// ordinary table is trained without a break.
template <class First, class Second, class StepCount>
void compare(int ranks, int later, First first, Second second, StepCount counting) {
  const watchdog guard("checkpoints");
  auto random = generator(61);
  const exec_space exec;
  const auto rule = ferry::optim::adam{.lr = 0.02};
  constexpr std::size_t rows = 77;
  ferry::tensor<ferry::half_t, host> plain("w", rows, width), whole("w", rows, width);
  const auto comm = group_of(ranks), next = group_of(later);
  ferry::sharded_table<ferry::half_t, host, First> table("w", comm, rows, width, first);
  ferry::sharded_table<ferry::half_t, host, Second> second_table("w", next, rows, width, second);
  ferry::init::uniform(exec, plain, -1, 1, 5);
  ferry::init::uniform(exec, table, -1, 1, 5);
  auto plain_state = ferry::optim::make_state(rule, plain);
  auto state = ferry::optim::make_state(rule, table);
  auto whole_state = ferry::optim::make_state(rule, whole);
  auto other_state = ferry::optim::make_state(rule, second_table);
  plain_state.set_seed(9);
  state.set_seed(9);
  const auto train = [&](auto& trained, auto& moments, int group, const batches<float>& batch) {
    ferry::step(exec, rule, plain, plain_state, batch.rows, batch.whole, counting,
                ferry::rounding::stochastic{})
        .wait();
    trained.comm().run([&](int rank) {
      ferry::step(exec, rule, trained, moments, batch.indices_of(rank), batch.values_of(rank), counting,
                  ferry::rounding::stochastic{})
          .wait();
    });
    REQUIRE(trained.comm().size() == group);
  };
  for (int i = 0; i < 3; ++i) train(table, state, ranks, batches<float>(random, ranks, rows, 30));

  const temporary_folder folder;
  {
    ferry::io::checkpoint run(folder.path() + "/run.ckpt");
    ferry::copy(exec, table, whole).wait();
    ferry::copy(exec, state, whole_state).wait();
    run.add("weights", whole);
    run.add("adam", rule, whole_state);
    run.save();
  }
  ferry::tensor<ferry::half_t, host> loaded("w", rows, width);
  auto loaded_state = ferry::optim::make_state(rule, loaded);
  ferry::io::checkpoint run(folder.path() + "/run.ckpt");
  run.add("weights", loaded);
  run.add("adam", rule, loaded_state);
  run.load();
  ferry::copy(exec, loaded, second_table).wait();
  ferry::copy(exec, loaded_state, other_state).wait();
  REQUIRE(other_state.steps() == 3);
  for (int i = 0; i < 3; ++i)
    train(second_table, other_state, later, batches<float>(random, later, rows, 30));
  if constexpr (StepCount::catches_up) {
    ferry::catch_up(exec, rule, plain, plain_state).wait();
    ferry::catch_up(exec, rule, second_table, other_state).wait();
  }
  REQUIRE(same_table(exec, second_table, plain));
}

}  // namespace

TEST_CASE("a checkpoint of a sharded table loads into any number of ranks and any sharding",
          "[distributed]") {
  compare(4, 3, ferry::sharding::hashed<5>{}, ferry::sharding::block{}, ferry::step_count::global{});
  compare(1, 8, ferry::sharding::cyclic{}, ferry::sharding::cyclic{}, ferry::step_count::per_row{});
  compare(5, 2, ferry::sharding::block{}, ferry::sharding::hashed<8>{}, ferry::step_count::catch_up{});
  compare(3, 2, ferry::sharding::replicated{}, ferry::sharding::table_wise{.rank = 1},
          ferry::step_count::per_row{});
}

TEST_CASE("states are copied between tables of the same extents, outside of run", "[distributed]") {
  const watchdog guard("copies of states");
  const exec_space exec;
  const auto comm = group_of(2);
  ferry::sharded_table<float, host> table("w", comm, 9, width);
  ferry::tensor<float, host> plain("w", 9, width), longer("w", 10, width);
  auto state = ferry::optim::make_state(ferry::optim::adam{}, table);
  auto same = ferry::optim::make_state(ferry::optim::adam{}, plain);
  auto larger = ferry::optim::make_state(ferry::optim::adam{}, longer);
  auto more = ferry::optim::make_state(ferry::optim::adam{.amsgrad = true}, plain);
  ferry::copy(exec, state, same).wait();
  REQUIRE_THROWS_AS(ferry::copy(exec, state, larger).wait(), ferry::invalid_argument);
  REQUIRE_THROWS_AS(ferry::copy(exec, larger, state).wait(), ferry::invalid_argument);
  REQUIRE_THROWS_AS(ferry::copy(exec, more, state).wait(), ferry::invalid_argument);
  REQUIRE_THROWS_AS(comm.run([&] { ferry::copy(exec, state, same).wait(); }), ferry::invalid_argument);
}

}  // namespace ferry_test::checkpoint_test
