// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <atomic>
#include <optional>
#include <set>
#include <utility>

/// Groups of devices: of device 0 alone, which every backend has, and of all devices in turn.
namespace ferry_test::devices_test {

namespace {

using device = ferry::device_space;

/// Kokkos::Threads serves one thread only, so ranks can't use their instances there.
#ifdef KOKKOS_ENABLE_THREADS
constexpr bool instances_work = false;
#else
constexpr bool instances_work = true;
#endif

/// The content of an array.
template <class Array>
ferry::tensor<float, host> contents_of(const Array& array) {
  ferry::tensor<float, host> read("read", array.rows(), array.width());
  ferry::copy(Kokkos::DefaultExecutionSpace{}, array, read).wait();
  return read;
}

/// Steps and gathers of a group of devices against those of an ordinary table.
template <class Space, class StateSpace>
void compare_with_one(const std::vector<int>& ids, std::uint64_t salt) {
  const watchdog guard("devices");
  auto random = generator(salt);
  const Kokkos::DefaultExecutionSpace exec;
  const ferry::optim::adam adam{.lr = 1e-2};
  const auto ranks = static_cast<int>(ids.size());
  const auto comm = ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)});
  for_each_sharding([&](auto spread) {
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
    ferry::step(exec, adam, table, state, batch.rows, batch.whole).wait();
    comm.run([&](int rank, const auto& instance) {
      ferry::step(instance, adam, big, states, batch.indices_of(rank), batch.values_of(rank)).wait();
    });
    REQUIRE(same_table(exec, big, contents_of(table)));
    ferry::step(exec, adam, table, state, batch.rows, batch.whole).wait();  // by one thread for the group
    ferry::step(exec, adam, big, states, batch.rows, batch.whole).wait();
    REQUIRE(same_table(exec, big, contents_of(table)));
    ferry::scatter_add(exec, table, batch.rows, batch.whole).wait();
    comm.run([&](int rank, const auto& instance) {  // a plan on each device
      const auto plan = ferry::make_plan(instance, batch.indices_of(rank), big);
      ferry::scatter_add(instance, big, plan, batch.values_of(rank)).wait();
    });
    REQUIRE(same_table(exec, big, contents_of(table)));

    const auto expected = contents_of(ferry::gather<device>(exec, table, batch.rows).get());
    comm.run([&](int rank, const auto& instance) {
      const auto& mine = batch.indices_of(rank);
      ferry::tensor<float, device> out("out", comm.device(rank), mine.size(), width);
      ferry::gather(instance, big, mine, out).wait();
      ferry::tensor<float, host> read("read", mine.size(), width);
      ferry::copy(instance, out, read).wait();
      expect(same_bits(read.data(), expected.data() + batch.at(rank) * width, read.size()), "rows");
    });

    // A whole table and its state on one device, and back.
    ferry::tensor<float, device> whole("whole", rows, width);
    auto whole_state = ferry::optim::make_state(adam, whole);
    ferry::copy(exec, big, whole).wait();
    ferry::copy(exec, states, whole_state).wait();
    REQUIRE(same_bits(contents_of(whole).data(), contents_of(table).data(), table.size()));
    for (int f = 0; f < state.fields(); ++f)
      REQUIRE(same_bits(contents_of(whole_state.field(f)).data(), contents_of(state.field(f)).data(),
                        table.size()));
    ferry::init::zeros(exec, big);
    ferry::copy(exec, whole, big).wait();
    ferry::copy(exec, whole_state, states).wait();
    ferry::step(exec, adam, table, state, batch.rows, batch.whole).wait();
    comm.run([&](int rank, const auto& instance) {
      ferry::step(instance, adam, big, states, batch.indices_of(rank), batch.values_of(rank)).wait();
    });
    REQUIRE(same_table(exec, big, contents_of(table)));
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

TEST_CASE("tables of a group of one device have the bits of an ordinary one", "[devices]") {
  if (!instances_work) SKIP("ranks can't share Kokkos::Threads");
  for (const int ranks : {1, 2, 4})
    compare_with_one<device, device>(std::vector<int>(static_cast<std::size_t>(ranks), 0), 71);
}

TEST_CASE("tables of a group of all devices have the bits of an ordinary one", "[devices]") {
  if (!instances_work) SKIP("ranks can't share Kokkos::Threads");
  for (const int ranks : rank_counts()) {
    compare_with_one<device, device>(all_in_turn(ranks), 72);
    compare_with_one<ferry::mapped_space, ferry::mapped_space>(all_in_turn(ranks), 73);
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
