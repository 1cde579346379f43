// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <atomic>
#include <optional>
#include <set>
#include <utility>

/// Groups of devices: of device 0 alone, which every backend has, and of all devices in turn.
namespace ferry_test::devices_test {

namespace {

/// The elements of an array, as bits.
template <class Array>
bool equal(const exec_space& exec, const Array& array, const std::vector<float>& expected) {
  const auto result = contents(exec, array);
  return result.size() == expected.size() && same_bits(result.data(), expected.data(), result.size());
}

/// Steps of a group of devices against those of an ordinary table, with states in a space of their own, and whole
/// tables and states on one device in between.
template <class Space, class StateSpace>
void compare_with_one(const std::vector<int>& ids, std::uint64_t salt) {
  const watchdog guard("devices");
  auto random = generator(salt);
  const exec_space exec;
  const ferry::optim::adam adam{.lr = 1e-2};
  const auto ranks = static_cast<int>(ids.size());
  const auto comm = group_on(ids);
  for_each_sharding_in_kernels([&](auto spread) {
    const std::size_t rows = 1 + random() % 150;
    INFO(ranks << " ranks, " << rows << " rows, " << decltype(spread)::name);
    const batches<float> batch(random, ranks, rows, 60);
    ferry::tensor<float, Space> table("w", rows, width);
    ferry::sharded_table<float, Space, decltype(spread)> big("w", comm, rows, width, spread);
    for (int r = 0; r < ranks; ++r)
      REQUIRE(big.shard(r).device() == (Space::is_host_accessible ? ferry::device{} : comm.device(r)));
    ferry::init::uniform(exec, table, -1, 1, 5);
    ferry::init::uniform(exec, big, -1, 1, 5);
    auto state = ferry::optim::make_state<StateSpace>(adam, table);
    auto states = ferry::optim::make_state<StateSpace>(adam, big);
    const auto step = [&] {
      ferry::step(exec, adam, table, state, batch.rows, batch.whole).wait();
      comm.run([&](int rank, const auto& instance) {
        ferry::step(instance, adam, big, states, batch.indices_of(rank), batch.values_of(rank)).wait();
      });
      REQUIRE(equal(exec, big, contents(exec, table)));
    };
    step();
    ferry::step(exec, adam, table, state, batch.rows, batch.whole).wait();  // by one thread for the group
    ferry::step(exec, adam, big, states, batch.rows, batch.whole).wait();
    // A whole table and its state on one device, and back.
    ferry::tensor<float, device> whole("whole", rows, width);
    auto whole_state = ferry::optim::make_state(adam, whole);
    ferry::copy(exec, big, whole).wait();
    ferry::copy(exec, states, whole_state).wait();
    REQUIRE(equal(exec, whole, contents(exec, table)));
    for (int f = 0; f < state.fields(); ++f)
      REQUIRE(equal(exec, whole_state.field(f), contents(exec, state.field(f))));
    ferry::init::zeros(exec, big);
    ferry::copy(exec, whole, big).wait();
    ferry::copy(exec, whole_state, states).wait();
    step();
  });
}

}  // namespace

TEST_CASE("a group of devices has a rank for each id, with the device and an instance", "[devices]") {
  const auto comm = ferry::communicator::devices({0, 0, 0}, {.deadline = std::chrono::seconds(30)});
  CHECK(comm.size() == 3);
  CHECK(comm.rank() == -1);
  for (int r = 0; r < 3; ++r) {
    CHECK(comm.device(r) == ferry::device{0});
    CHECK(ferry::device_of(comm.exec(r)) == ferry::device{0});
  }
  std::vector<int> ran(3);
  comm.run([&](int rank, const auto& exec) {
    expect(ferry::device_of(exec) == ferry::device{0}, "the rank's instance");
    expect(comm.rank() == rank, "the rank");
    comm.barrier();
    ++ran[static_cast<std::size_t>(rank)];
  });
  CHECK(ran == std::vector<int>{1, 1, 1});
  CHECK(ferry::communicator::devices({0}).size() == 1);
}

TEST_CASE("other groups have no devices, and give Kokkos' default instance", "[devices]") {
  const auto comm = ferry::communicator::threads(2);
  CHECK(comm.device(1) == ferry::device{});
  CHECK(comm.exec(1) == Kokkos::DefaultExecutionSpace{});
  std::atomic<int> ran{0};
  comm.run([&](int rank, const Kokkos::DefaultExecutionSpace&) { ran += rank == 0; });
  CHECK(ran == 1);
}

TEST_CASE("ids and ranks that there are none of are refused", "[devices]") {
  const auto list = ferry::devices();
  const int beyond = static_cast<int>(list.size());
  const auto text = said<ferry::invalid_argument>([&] {
    static_cast<void>(ferry::communicator::devices({0, beyond}));
  });
  CHECK(text.find("device " + std::to_string(beyond)) != std::string::npos);
  CHECK(text.find("0 (" + list[0].name + ")") != std::string::npos);
  CHECK_THROWS_AS(ferry::communicator::devices({-1}), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::communicator::devices({}), ferry::invalid_argument);
  const std::vector<int> single{0};
  CHECK_THROWS_AS(ferry::communicator::devices(single, {.deadline = std::chrono::nanoseconds(0)}),
                  ferry::invalid_argument);
  const auto comm = ferry::communicator::devices(single);
  for (const int rank : {-1, 1}) {
    CHECK_THROWS_AS(comm.device(rank), ferry::out_of_range);
    CHECK_THROWS_AS(comm.exec(rank), ferry::out_of_range);
  }
}

TEST_CASE("tables and states of a group of devices are copied to one device and back", "[devices]") {
  if (!instances_work) SKIP("ranks can't share Kokkos::Threads");
  for (const int ranks : rank_counts()) {
    compare_with_one<device, device>(all_in_turn(ranks), 72);
    compare_with_one<ferry::mapped_space, device>(all_in_turn(ranks), 74);
  }
}

TEST_CASE("a group of devices is usable after a rank failed", "[devices]") {
  const watchdog guard("devices fail");
  const auto comm = ferry::communicator::devices({0, 0});
  CHECK_THROWS_AS(comm.run([](int rank, const auto&) {
    if (rank == 1) throw std::runtime_error("as planned");
  }),
                  std::runtime_error);
  int ran = 0;
  comm.run([&](int rank) { ran += rank == 1; });
  CHECK(ran == 1);
}

TEST_CASE("instances of a group end with it, or with their last copy", "[devices]") {
  std::optional<ferry::communicator> comm = ferry::communicator::devices({0, 0});
  const auto copy = comm->exec(1);
  comm.reset();
  ferry::tensor<float, device> table("table", 10, 2);
  ferry::init::zeros(copy, table);
  CHECK(ferry::device_of(copy) == ferry::device{0});
}

}  // namespace ferry_test::devices_test
