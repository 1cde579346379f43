// SPDX-License-Identifier: Apache-2.0
#include "distributed/routes.hpp"

#include "support/folder.hpp"

#include <ferry/io.hpp>

/// Checkpoints of sharded tables and states, without a copy of the whole table.
namespace ferry_test::sharded_checkpoint_test {

namespace {

/// Who saves and loads: the group as a whole, its ranks with one object, its ranks with an object each; or an
/// ordinary table and its state, of which the others are copies.
enum class by { group, ranks, objects, copies };

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

/// Trains on `comm`, saves, loads on `next` with another sharding and into an ordinary table, and trains on; an
/// ordinary table is trained without a break.
template <class StepCount, class Space = host, class SecondSpace = host, class Rule, class First,
          class Second>
void compare(const ferry::communicator& comm, const ferry::communicator& next, First first, Second second,
             const Rule& rule, by saves, by loads, std::size_t rows = 77) {
  const watchdog guard("checkpoints");
  auto random = generator(71);
  const exec_space exec;
  using table_type = ferry::tensor<ferry::half_t, host>;
  table_type plain("w", rows, width), loaded("w", rows, width);
  ferry::sharded_table<ferry::half_t, Space, First> table("w", comm, rows, width, first);
  ferry::sharded_table<ferry::half_t, SecondSpace, Second> second_table("w", next, rows, width, second);
  ferry::init::uniform(exec, plain, -1, 1, 5);
  ferry::init::uniform(exec, table, -1, 1, 5);
  auto plain_state = ferry::optim::make_state(rule, plain);
  auto state = ferry::optim::make_state(rule, table);
  auto loaded_state = ferry::optim::make_state(rule, loaded);
  auto other_state = ferry::optim::make_state(rule, second_table);
  plain_state.set_seed(9);
  state.set_seed(9);
  Rule mine = rule;
  const auto step = [&](const auto& instance, auto& trained, auto& moments, const auto& indices,
                        const auto& values) {
    ferry::step(instance, mine, trained, moments, indices, values, StepCount{}, ferry::rounding::stochastic{})
        .wait();
  };
  const auto train = [&](auto& trained, auto& moments, const batches<float>& batch) {
    step(exec, plain, plain_state, batch.rows, batch.whole);
    run_ranks(trained.comm(), [&](int rank, const auto& instance) {
      step(instance, trained, moments, batch.indices_of(rank), batch.values_of(rank));
    });
  };
  for (int i = 0; i < 3; ++i) {
    mine.lr *= 0.9;
    train(table, state, batches<float>(random, comm.size(), rows, 30));
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
  const auto save = [](auto& run) { run.save(); };
  const auto load = [](auto& run) { run.load(); };
  if (saves == by::copies) {
    ferry::copy(exec, table, loaded).wait();
    ferry::copy(exec, state, loaded_state).wait();
    with_checkpoint(by::group, comm, path, add(loaded, loaded_state), save);
  }
  for (int i = 0; i < 2 && saves != by::copies; ++i)  // the second one replaces a checkpoint
    with_checkpoint(saves, comm, path, add(table, state), save);
  const double lr = mine.lr;
  mine.lr = 77;
  epoch = 0;
  dense = {7, 7, 7};
  if (loads == by::copies) {
    with_checkpoint(by::group, next, path, add(loaded, loaded_state), load);
    ferry::copy(exec, loaded, second_table).wait();
    ferry::copy(exec, loaded_state, other_state).wait();
  } else {
    with_checkpoint(loads, next, path, add(second_table, other_state), load);
  }
  REQUIRE(mine.lr == lr);
  REQUIRE(epoch == 12);
  REQUIRE(dense == std::vector<double>{1, 2, 3});
  REQUIRE(other_state.steps() == 3);
  REQUIRE(same_table(exec, second_table, plain));
  with_checkpoint(by::group, next, path, add(loaded, loaded_state), load);
  REQUIRE(same_bits(loaded.data(), plain.data(), plain.size()));
  for (int i = 0; i < 3; ++i) {
    const batches<float> batch(random, next.size(), rows, 30);
    train(second_table, other_state, batch);
    step(exec, loaded, loaded_state, batch.rows, batch.whole);
  }
  if constexpr (StepCount::catches_up) {
    ferry::catch_up(exec, mine, plain, plain_state).wait();
    ferry::catch_up(exec, mine, loaded, loaded_state).wait();
    ferry::catch_up(exec, mine, second_table, other_state).wait();
  }
  REQUIRE(same_table(exec, second_table, plain));
  REQUIRE(same_bits(loaded.data(), plain.data(), plain.size()));
}

constexpr by all_ways[] = {by::group, by::ranks, by::objects, by::copies};

}  // namespace

TEST_CASE("training goes on from a checkpoint of a sharded table with the same bits", "[distributed]") {
  const ferry::optim::sgd momentum{.lr = 0.05, .momentum = 0.9};
  const ferry::optim::adam adam{.lr = 0.02};
  auto random = generator(72);
  for (const by saves : all_ways)
    for (const by loads : all_ways) {
      compare<ferry::step_count::global>(group_of(4), group_of(2), ferry::sharding::hashed<5>{},
                                         ferry::sharding::block{}, momentum, saves, loads);
      compare<ferry::step_count::catch_up>(group_of(2), group_of(4), backward{}, ferry::sharding::hashed<8>{},
                                           adam, saves, loads);
      compare<ferry::step_count::per_row>(group_of(1), group_of(4), ferry::sharding::replicated{},
                                          ferry::sharding::table_wise{.rank = 2}, adam, saves, loads);
      compare<ferry::step_count::per_row>(group_of(3), group_of(2),
                                          draw_sharding<ferry::sharding::dealt>(random, 77, 3),
                                          ferry::sharding::replicated{}, adam, saves, loads);
    }
}

TEST_CASE("shards on devices are saved and loaded", "[distributed][devices]") {
  if (!instances_work) SKIP("Kokkos::Threads");
  const ferry::optim::adam adam{.lr = 0.02};
  for (const by who : {by::group, by::ranks})
    for (const int ranks : {1, 2, 4}) {
      const auto comm = group_on(all_in_turn(ranks));
      compare<ferry::step_count::catch_up, device, host>(comm, comm, ferry::sharding::hashed<5>{},
                                                         ferry::sharding::cyclic{}, adam, who, who, 4003);
      compare<ferry::step_count::catch_up, host, device>(comm, comm, ferry::sharding::cyclic{},
                                                         ferry::sharding::hashed<6>{}, adam, who, who, 4003);
    }
}

TEST_CASE("long rows on devices are saved and loaded in parts", "[distributed][devices]") {
  if (!instances_work) SKIP("Kokkos::Threads");
  const watchdog guard("long rows");
  const exec_space exec;
  const auto comm = group_on(all_in_turn(3));
  for (const std::size_t columns : {std::size_t{16384}, std::size_t{20001}}) {  // 64 KiB, and longer
    ferry::tensor<float, host> plain("w", 130, columns);
    ferry::sharded_table<float, device, ferry::sharding::hashed<2>> table("w", comm, 130, columns);
    ferry::init::uniform(exec, plain, -1, 1, 7);
    ferry::init::uniform(exec, table, -1, 1, 7);
    const temporary_folder folder;
    ferry::io::checkpoint run(folder.path() + "/run");
    run.add("w", table);
    comm.run([&] { run.save(); });
    ferry::init::zeros(exec, table);
    comm.run([&] { run.load(); });
    CHECK(same_table(exec, table, plain));
    run.save();
    ferry::init::zeros(exec, table);
    run.load();
    CHECK(same_table(exec, table, plain));
  }
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

}  // namespace ferry_test::sharded_checkpoint_test
