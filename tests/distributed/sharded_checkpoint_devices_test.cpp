// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include "support/folder.hpp"

#include <ferry/io.hpp>

#include <string>

/// Checkpoints of tables whose shards lie on devices: of device 0 alone, and of all devices in turn.
namespace ferry_test::sharded_checkpoint_devices_test {

namespace {

using device = ferry::device_space;

#ifdef KOKKOS_ENABLE_THREADS
constexpr bool instances_work = false;
#else
constexpr bool instances_work = true;
#endif

ferry::communicator devices_in_turn(int ranks) {
  return ferry::communicator::devices(all_in_turn(ranks), {.deadline = std::chrono::seconds(30)});
}

template <class Array>
bool has_contents_of(const Array& array, const ferry::tensor<float, host>& expected) {
  ferry::tensor<float, host> read("read", expected.rows(), expected.width());
  ferry::copy(Kokkos::DefaultExecutionSpace{}, array, read).wait();
  return same_bits(read.data(), expected.data(), expected.size());
}

/// Steps, saves, loads into tables of another sharding in another space, and steps on.
template <class First, class Space, class Second, class OtherSpace>
void compare(int ranks, First first, Second second, bool by_owner) {
  const watchdog guard("devices");
  auto random = generator(81);
  const Kokkos::DefaultExecutionSpace exec;
  const ferry::optim::adam adam{.lr = 1e-2};
  constexpr std::size_t rows = 4003;
  constexpr ferry::step_count::catch_up counted{};
  const auto comm = devices_in_turn(ranks);
  ferry::tensor<float, host> plain("w", rows, width), read("w", rows, width);
  ferry::sharded_table<float, Space, First> table("w", comm, rows, width, first);
  ferry::sharded_table<float, OtherSpace, Second> second_table("w", comm, rows, width, second);
  ferry::init::uniform(exec, plain, -1, 1, 5);
  ferry::init::uniform(exec, table, -1, 1, 5);
  ferry::init::zeros(exec, second_table);
  auto plain_state = ferry::optim::make_state(adam, plain);
  auto read_state = ferry::optim::make_state(adam, read);
  auto state = ferry::optim::make_state(adam, table);
  auto other_state = ferry::optim::make_state(adam, second_table);
  const auto train = [&](auto& trained, auto& moments) {
    const batches<float> batch(random, ranks, rows, 300);
    ferry::step(exec, adam, plain, plain_state, batch.rows, batch.whole, counted).wait();
    comm.run([&](int rank, const auto& instance) {
      ferry::step(instance, adam, trained, moments, batch.indices_of(rank), batch.values_of(rank), counted)
          .wait();
    });
  };
  train(table, state);
  train(table, state);
  const temporary_folder folder;
  ferry::io::checkpoint saved(folder.path() + "/run"), loaded(folder.path() + "/run"),
      ordinary(folder.path() + "/run");
  saved.add("w", table);
  saved.add("adam", adam, state);
  loaded.add("w", second_table);
  loaded.add("adam", adam, other_state);
  ordinary.add("w", read);
  ordinary.add("adam", adam, read_state);
  if (by_owner) {
    saved.save();
    loaded.load();
  } else {
    comm.run([&] { saved.save(); });
    comm.run([&] { loaded.load(); });
  }
  CHECK(has_contents_of(second_table, plain));
  train(second_table, other_state);
  loaded.save();
  ordinary.load();
  ferry::catch_up(exec, adam, plain, plain_state).wait();
  ferry::catch_up(exec, adam, read, read_state).wait();
  ferry::catch_up(exec, adam, second_table, other_state).wait();
  CHECK(has_contents_of(second_table, plain));
  CHECK(has_contents_of(read, plain));
}

}  // namespace

TEST_CASE("shards on devices are saved and loaded", "[distributed][devices]") {
  if (!instances_work) SKIP("Kokkos::Threads");
  for (const bool by_owner : {false, true})
    for (const int ranks : {1, 2, 4}) {
      compare<ferry::sharding::hashed<5>, device, ferry::sharding::cyclic, ferry::mapped_space>(ranks, {}, {},
                                                                                                by_owner);
      compare<ferry::sharding::cyclic, ferry::mapped_space, ferry::sharding::hashed<6>, device>(ranks, {}, {},
                                                                                                by_owner);
    }
}

TEST_CASE("long rows on devices are saved and loaded in parts", "[distributed][devices]") {
  if (!instances_work) SKIP("Kokkos::Threads");
  const watchdog guard("long rows");
  const Kokkos::DefaultExecutionSpace exec;
  const auto comm = devices_in_turn(3);
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
    CHECK(has_contents_of(table, plain));
    run.save();
    ferry::init::zeros(exec, table);
    run.load();
    CHECK(has_contents_of(table, plain));
  }
}

}  // namespace ferry_test::sharded_checkpoint_devices_test
