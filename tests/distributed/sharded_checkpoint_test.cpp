// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include "support/folder.hpp"

#include <ferry/io.hpp>

#include <optional>
#include <type_traits>

/// Checkpoints of sharded tables and states, without a copy of the whole table.
namespace ferry_test::sharded_checkpoint_test {

namespace {

constexpr std::size_t rows = 77;

/// Who saves and loads: the group as a whole, its ranks with one object, its ranks with an object each.
enum class by { group, ranks, objects };

/// Calls act(checkpoint) as `who`, after add(checkpoint).
template <class Add, class Act>
void with_checkpoint(by who, const ferry::communicator& comm, const std::string& path, const Add& add,
                     const Act& act) {
  if (who == by::objects) {
    comm.run([&] {
      ferry::io::checkpoint run(path);
      add(run);
      act(run);
    });
    return;
  }
  ferry::io::checkpoint run(path);
  add(run);
  if (who == by::ranks)
    comm.run([&] { act(run); });
  else
    act(run);
}

/// Trains on `ranks`, saves, loads on `later` ranks with another sharding and into an ordinary table, and
/// trains on; an ordinary table is trained without a break.
template <class StepCount, class Rule, class First, class Second>
void compare(int ranks, int later, First first, Second second, const Rule& rule, by saves, by loads) {
  const watchdog guard("checkpoints");
  auto random = generator(71);
  const exec_space exec;
  using table_type = ferry::tensor<ferry::half_t, host>;
  table_type plain("w", rows, width), loaded("w", rows, width);
  const auto comm = group_of(ranks), next = group_of(later);
  ferry::sharded_table<ferry::half_t, host, First> table("w", comm, rows, width, first);
  ferry::sharded_table<ferry::half_t, host, Second> second_table("w", next, rows, width, second);
  ferry::init::uniform(exec, plain, -1, 1, 5);
  ferry::init::uniform(exec, table, -1, 1, 5);
  auto plain_state = ferry::optim::make_state(rule, plain);
  auto state = ferry::optim::make_state(rule, table);
  auto loaded_state = ferry::optim::make_state(rule, loaded);
  auto other_state = ferry::optim::make_state(rule, second_table);
  plain_state.set_seed(9);
  state.set_seed(9);
  Rule mine = rule;
  const auto step = [&](auto& trained, auto& moments, const auto& indices, const auto& values) {
    ferry::step(exec, mine, trained, moments, indices, values, StepCount{}, ferry::rounding::stochastic{})
        .wait();
  };
  const auto train = [&](auto& trained, auto& moments, const batches<float>& batch) {
    step(plain, plain_state, batch.rows, batch.whole);
    trained.comm().run(
        [&](int rank) { step(trained, moments, batch.indices_of(rank), batch.values_of(rank)); });
  };
  for (int i = 0; i < 3; ++i) {
    mine.lr *= 0.9;
    train(table, state, batches<float>(random, ranks, rows, 30));
  }

  const temporary_folder folder;
  const std::string path = folder.path() + "/run.ckpt";
  std::int64_t epoch = 12;
  std::vector<double> dense{1, 2, 3};
  const auto add = [&](auto& trained, auto& moments) {
    return [&](ferry::io::checkpoint& run) {
      run.add("weights", trained);
      run.add("epoch", epoch);
      run.add("rule", mine, moments);
      run.add("dense", dense);
    };
  };
  for (int i = 0; i < 2; ++i)  // the second one replaces a checkpoint
    with_checkpoint(saves, comm, path, add(table, state), [](auto& run) { run.save(); });
  const double lr = mine.lr;
  mine.lr = 77;
  epoch = 0;
  dense = {7, 7, 7};
  with_checkpoint(loads, next, path, add(second_table, other_state), [](auto& run) { run.load(); });
  REQUIRE(mine.lr == lr);
  REQUIRE(epoch == 12);
  REQUIRE(dense == std::vector<double>{1, 2, 3});
  REQUIRE(other_state.steps() == 3);
  REQUIRE(same_table(exec, second_table, plain));
  {
    ferry::io::checkpoint run(path);
    add(loaded, loaded_state)(run);
    run.load();
  }
  REQUIRE(same_bits(loaded.data(), plain.data(), plain.size()));
  for (int i = 0; i < 3; ++i) {
    const batches<float> batch(random, later, rows, 30);
    train(second_table, other_state, batch);
    step(loaded, loaded_state, batch.rows, batch.whole);
  }
  if constexpr (StepCount::catches_up) {
    ferry::catch_up(exec, mine, plain, plain_state).wait();
    ferry::catch_up(exec, mine, loaded, loaded_state).wait();
    ferry::catch_up(exec, mine, second_table, other_state).wait();
  }
  REQUIRE(same_table(exec, second_table, plain));
  REQUIRE(same_bits(loaded.data(), plain.data(), plain.size()));
}

constexpr by all_ways[] = {by::group, by::ranks, by::objects};

}  // namespace

TEST_CASE("training goes on from a checkpoint of a sharded table with the same bits", "[distributed]") {
  const ferry::optim::sgd momentum{.lr = 0.05, .momentum = 0.9};
  const ferry::optim::adam adam{.lr = 0.02};
  for (const by saves : all_ways)
    for (const by loads : all_ways) {
      compare<ferry::step_count::global>(4, 2, ferry::sharding::hashed<5>{}, ferry::sharding::block{},
                                         momentum, saves, loads);
      compare<ferry::step_count::catch_up>(2, 4, ferry::sharding::cyclic{}, ferry::sharding::hashed<8>{},
                                           adam, saves, loads);
      compare<ferry::step_count::per_row>(1, 4, ferry::sharding::replicated{},
                                          ferry::sharding::table_wise{.rank = 2}, adam, saves, loads);
      compare<ferry::step_count::per_row>(3, 1, ferry::sharding::table_wise{.rank = 1},
                                          ferry::sharding::replicated{}, adam, saves, loads);
    }
}

}  // namespace ferry_test::sharded_checkpoint_test
