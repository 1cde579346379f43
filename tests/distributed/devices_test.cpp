// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <optional>
#include <set>
#include <utility>

using namespace ferry_test;

/// Groups of devices. The ranks share device 0 here, so the tests run on every backend; second_device/ has those
/// with a device for each rank.
namespace {

using device = ferry::device_space;

/// Kokkos::Threads serves one thread only, so ranks can't use their instances there.
#ifdef KOKKOS_ENABLE_THREADS
constexpr bool instances_work = false;
#else
constexpr bool instances_work = true;
#endif

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
  int ran = 0;
  comm.run([&](int rank, const Kokkos::DefaultExecutionSpace&) { ran += rank == 0; });
  CHECK(ran == 1);
}

TEST_CASE("ids and ranks that there are none of are refused", "[devices]") {
  const auto all = ferry::devices();
  const int beyond = static_cast<int>(all.size());
  const auto text = said<ferry::invalid_argument>([&] {
    static_cast<void>(ferry::communicator::devices({0, beyond}));
  });
  CHECK(text.find("device " + std::to_string(beyond)) != std::string::npos);
  CHECK(text.find("0 (" + all[0].name + ")") != std::string::npos);
  CHECK_THROWS_AS(ferry::communicator::devices({-1}), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::communicator::devices({}), ferry::invalid_argument);
  const std::vector<int> one{0};
  CHECK_THROWS_AS(ferry::communicator::devices(one, {.deadline = std::chrono::nanoseconds(0)}),
                  ferry::invalid_argument);
  const auto comm = ferry::communicator::devices(one);
  for (const int rank : {-1, 1}) {
    CHECK_THROWS_AS(comm.device(rank), ferry::out_of_range);
    CHECK_THROWS_AS(comm.exec(rank), ferry::out_of_range);
  }
}

TEST_CASE("tables of a group of devices have the bits of an ordinary one", "[devices]") {
  if (!instances_work) SKIP("ranks can't share Kokkos::Threads");
  const watchdog guard("devices");
  auto random = generator(71);
  const Kokkos::DefaultExecutionSpace exec;
  const ferry::optim::adam adam{.lr = 1e-2};
  for (const int ranks : {1, 2, 4})
    for_each_sharding([&](auto spread) {
      const std::size_t rows = 1 + random() % 150;
      INFO(ranks << " ranks, " << rows << " rows, " << decltype(spread)::name);
      const batches<float> batch(random, ranks, rows, 60);
      const auto comm = ferry::communicator::devices(std::vector<int>(static_cast<std::size_t>(ranks), 0));
      ferry::tensor<float, device> table("w", rows, width);
      ferry::sharded_table<float, device, decltype(spread)> big("w", comm, rows, width, spread);
      for (int r = 0; r < ranks; ++r) REQUIRE(big.shard(r).device() == ferry::device{0});
      ferry::init::uniform(exec, table, -1, 1, 5);
      ferry::init::uniform(exec, big, -1, 1, 5);
      auto state = ferry::optim::make_state(adam, table);
      auto states = ferry::optim::make_state(adam, big);
      const auto plain = [&] {
        ferry::tensor<float, host> read("read", rows, width);
        ferry::copy(exec, table, read).wait();
        return read;
      };
      ferry::step(exec, adam, table, state, batch.rows, batch.all).wait();
      comm.run([&](int rank, const auto& own) {
        ferry::step(own, adam, big, states, batch.indices_of(rank), batch.values_of(rank)).wait();
      });
      REQUIRE(same_table(exec, big, plain()));
      ferry::step(exec, adam, table, state, batch.rows, batch.all).wait();  // by one thread for the group
      ferry::step(exec, adam, big, states, batch.rows, batch.all).wait();
      REQUIRE(same_table(exec, big, plain()));

      ferry::tensor<float, device> all("all", batch.rows.size(), width);
      ferry::gather(exec, table, batch.rows, all).wait();
      ferry::tensor<float, host> expected("expected", batch.rows.size(), width);
      ferry::copy(exec, all, expected).wait();
      comm.run([&](int rank, const auto& own) {
        const auto& mine = batch.indices_of(rank);
        ferry::tensor<float, device> out("out", comm.device(rank), mine.size(), width);
        ferry::gather(own, big, mine, out).wait();
        ferry::tensor<float, host> read("read", mine.size(), width);
        ferry::copy(own, out, read).wait();
        expect(same_bits(read.data(), expected.data() + batch.at(rank) * width, read.size()), "rows");
      });
    });
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
