// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <optional>
#include <string>
#include <thread>

namespace ferry_test::communicator_test {

using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;

TEST_CASE("run calls the function once for each rank, each on a thread of its own", "[distributed]") {
  const watchdog guard("run");
  for (const int ranks : {1, 2, 5}) {
    const auto comm = group_of(ranks);
    REQUIRE(comm.size() == ranks);
    REQUIRE(comm.rank() == (ranks == 1 ? 0 : -1));
    std::vector<std::thread::id> threads(static_cast<std::size_t>(ranks));
    std::atomic<int> calls{0};
    comm.run([&](int rank) {
      threads[static_cast<std::size_t>(rank)] = std::this_thread::get_id();
      expect(comm.rank() == rank, "the rank of the thread");
      for (int i = 0; i < 100; ++i) comm.barrier();
      ++calls;
    });
    comm.run([&] { ++calls; });
    REQUIRE(calls == 2 * ranks);
    REQUIRE(comm.rank() == (ranks == 1 ? 0 : -1));
    for (int a = 0; a < ranks; ++a)
      for (int b = 0; b < a; ++b)
        REQUIRE(threads[static_cast<std::size_t>(a)] != threads[static_cast<std::size_t>(b)]);
  }
  REQUIRE_THROWS_AS(ferry::communicator::threads(0), ferry::invalid_argument);
  REQUIRE_THROWS_AS(ferry::communicator::threads(2, {.deadline = 0s}), ferry::invalid_argument);
}

TEST_CASE("an exception of one rank ends the waits of the others, and the group can be used again",
          "[distributed]") {
  const watchdog guard("a rank that throws");
  const auto comm = group_of(4);
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<std::string> messages(4);
    const auto text = said<std::runtime_error>([&] {
      comm.run([&](int rank) {
        comm.barrier();
        if (rank == 2) throw std::runtime_error("the disk is full");
        messages[static_cast<std::size_t>(rank)] = said<ferry::peer_error>([&] { comm.barrier(); });
        comm.barrier();  // throws again
      });
    });
    REQUIRE(text == "the disk is full");
    for (const int r : {0, 1, 3}) {
      CHECK_THAT(messages[static_cast<std::size_t>(r)], ContainsSubstring("rank 2"));
      CHECK_THAT(messages[static_cast<std::size_t>(r)], ContainsSubstring("the disk is full"));
    }
    comm.run([&] { comm.barrier(); });
  }
  // Of several errors that of the lowest rank.
  REQUIRE(said<std::runtime_error>(
              [&] { comm.run([&](int rank) { throw std::runtime_error(std::to_string(rank)); }); }) == "0");
  // Not every exception is a std::exception.
  int thrown = 0;
  try {
    comm.run([&](int rank) {
      if (rank == 1) throw 7;
      comm.barrier();
    });
  } catch (int number) {
    thrown = number;
  }
  REQUIRE(thrown == 7);
}

TEST_CASE("a rank that comes late or never breaks the group, and the message says who is where",
          "[distributed]") {
  const watchdog guard("a rank that never calls");
  {
    const auto comm = group_of(3, 200ms);
    const auto text = said<ferry::communication_error>([&] {
      comm.run([&](int rank) {
        comm.barrier();
        if (rank == 1) std::this_thread::sleep_for(600ms);
        comm.barrier();
      });
    });
    CHECK_THAT(text, ContainsSubstring("200 ms") && ContainsSubstring("rank 0 is in barrier") &&
                         ContainsSubstring("rank 1 is elsewhere, after barrier") &&
                         ContainsSubstring("call 1"));
    REQUIRE_THROWS_AS(comm.run([&] { comm.barrier(); }), ferry::communication_error);  // for good
  }
  {  // within the deadline
    const auto comm = group_of(3, 20s);
    comm.run([&](int rank) {
      if (rank == 1) std::this_thread::sleep_for(100ms);
      comm.barrier();
    });
  }
  {  // a rank that has left is missed at once
    const auto comm = group_of(3, 3600s);
    const auto text = said<ferry::communication_error>([&] {
      comm.run([&](int rank) {
        if (rank != 1) comm.barrier();
      });
    });
    CHECK_THAT(text, ContainsSubstring("rank 1 has left"));
  }
}

TEST_CASE("different calls give protocol_error on all ranks", "[distributed]") {
  const watchdog guard("different calls");
  const exec_space exec;
  const auto comm = group_of(3);
  ferry::sharded_table<float, host> big("w", comm, 10, width);
  std::atomic<int> failures{0};
  REQUIRE_THROWS_AS(comm.run([&](int rank) {
    const auto text = said<ferry::protocol_error>([&] {
      if (rank == 1)
        comm.barrier();
      else
        ferry::init::zeros(exec, big);
    });
    if (text.find("init::zeros of 'w'") != std::string::npos &&
        text.find("rank 1 is in barrier") != std::string::npos)
      ++failures;
    comm.barrier();
  }),
                    ferry::communication_error);
  REQUIRE(failures == 3);

  // Tables that differ in what all ranks must pass alike.
  const auto second_group = group_of(2);
  REQUIRE_THROWS_AS(second_group.run([&](int rank) {
    const ferry::sharded_table<float, host> mine("w", second_group, 10 + rank, width);
  }),
                    ferry::protocol_error);
}

TEST_CASE("threads of the user's own act for ranks", "[distributed]") {
  const watchdog guard("bind");
  const exec_space exec;
  const auto comm = group_of(2, 20s);
  ferry::sharded_table<float, host> big("w", comm, 10, width);
  std::string first, second;
  std::thread other([&] {
    const auto bound = comm.bind(1);
    comm.barrier();
    ferry::init::constant(exec, big, 3);
    first = said<ferry::peer_error>([&] { comm.barrier(); });
  });
  try {
    const auto bound = comm.bind(0);
    REQUIRE_THROWS_AS(comm.bind(0), ferry::invalid_argument);
    REQUIRE_THROWS_AS(comm.bind(2), ferry::out_of_range);
    comm.barrier();
    ferry::init::constant(exec, big, 3);
    std::thread([&] {
      second = said<ferry::invalid_argument>([&] { ferry::init::zeros(exec, big); });
    }).join();
    throw std::runtime_error("leaves");
  } catch (const std::runtime_error&) {
  }
  other.join();
  CHECK_THAT(first, ContainsSubstring("rank 0"));
  CHECK_THAT(second, ContainsSubstring("communicator::bind"));
}

TEST_CASE("one thread may act in two groups, and groups may nest", "[distributed]") {
  const watchdog guard("two groups");
  const auto outer = group_of(3), inner = group_of(2);
  std::atomic<int> calls{0};
  outer.run([&](int rank) {
    outer.barrier();
    if (rank == 1)
      inner.run([&](int) {
        inner.barrier();
        ++calls;
      });
    outer.barrier();
    expect(outer.rank() == rank, "the outer rank");
  });
  REQUIRE(calls == 2);
  // A run inside of a run of the same group.
  REQUIRE_THROWS_AS(inner.run([&] { inner.run([] {}); }), ferry::invalid_argument);
  inner.run([&] { inner.barrier(); });
  const auto handle = outer.bind(0);
  const auto two = inner.bind(1);
  REQUIRE(outer.rank() == 0);
  REQUIRE(inner.rank() == 1);
}

TEST_CASE("all_gather lists by rank, and all_reduce refuses arrays that differ", "[distributed]") {
  const watchdog guard("all_reduce");
  for (const int ranks : {1, 2, 3, 8}) {
    const auto comm = group_of(ranks);
    comm.run([&](int rank) {
      const auto listed = comm.all_gather(10 * rank);
      expect(listed.size() == static_cast<std::size_t>(ranks), "all values");
      for (int r = 0; r < ranks; ++r) expect(listed[static_cast<std::size_t>(r)] == 10 * r, "a value");
    });
  }
  const exec_space exec;
  const auto comm = group_of(2);
  REQUIRE_THROWS_AS(comm.run([&](int rank) {
    ferry::tensor<float, host> mine("mine", 3 + rank);
    ferry::init::zeros(exec, mine);
    ferry::all_reduce(exec, comm, mine).wait();
  }),
                    ferry::protocol_error);
}

}  // namespace ferry_test::communicator_test
