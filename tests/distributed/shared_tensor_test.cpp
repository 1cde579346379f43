// SPDX-License-Identifier: Apache-2.0
#include "distributed/forwarding_transport.hpp"
#include "distributed/kit.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <utility>

namespace ferry_test::shared_tensor_test {

namespace {

/// Bytes and allocations of a label.
std::pair<std::size_t, std::size_t> held(const std::string& label) {
  for (const auto& holding : ferry::memory_by_label<ferry::pageable_space>())
    if (holding.label == label) return {holding.current, holding.count};
  return {0, 0};
}

/// Threads of which rank 1 sleeps past the deadline between a meeting about addresses and its reads.
class slow_reader final : public forwarding_transport {
 public:
  static constexpr std::chrono::milliseconds deadline{50};
  std::atomic<bool> first_has_left{false}, read_late{false};

  slow_reader() : forwarding_transport(2, deadline) {}
  void all_gather(int rank, const ferry::detail::call_note& note, std::span<const std::byte> mine,
                  std::byte* theirs) override {
    inner().all_gather(rank, note, mine, theirs);
    if (rank != 1 || mine.size() != sizeof(void*)) return;
    std::this_thread::sleep_for(4 * deadline);
    read_late = first_has_left.load();
  }
  void end_reads(int rank, const ferry::detail::call_note& note, const char* failed,
                 std::span<const std::byte> mine, std::byte* theirs) override {
    inner().end_reads(rank, note, failed, mine, theirs);
  }
};

}  // namespace

TEST_CASE("a rank whose deadline passes keeps a shared tensor until the others have read it",
          "[distributed]") {
  const watchdog guard("slow reader");
  const auto group = std::make_shared<slow_reader>();
  const ferry::communicator comm(group);
  comm.run([&](int rank) {
    const auto make = [&] { ferry::shared_tensor<float>("kept", comm, 100, 7); };
    expect(!said<ferry::communication_error>(make).empty(), "the deadline");
    if (rank == 0) group->first_has_left = true;
  });
  CHECK_FALSE(group->read_late);
  CHECK(held("ferry::tensor::kept").second == 0);
}

TEST_CASE("ranks share a tensor without copies", "[distributed]") {
  const watchdog guard("shared tensors");
  const exec_space exec;
  auto random = generator(51);
  for (const int ranks : {1, 2, 4, 8}) {
    const std::size_t rows = 1 + random() % 300;
    INFO(ranks << " ranks, " << rows << " rows");
    ferry::tensor<float, host> expected("expected", rows, width);
    ferry::init::uniform(exec, expected, -1, 1, 4);
    const auto ids = indices<std::int64_t>(random, 200, rows);
    const auto comm = group_of(ranks);
    comm.run([&](int rank) {
      ferry::shared_tensor<float> table("features", comm, rows, width);
      expect(table.rows() == rows && table.width() == width && table.label() == "features", "extents");
      expect(std::all_of(table.data(), table.data() + table.size(), [](float x) { return x == 0; }), "zeros");
      comm.barrier();
      // Each rank writes its part; all see all of it.
      auto mine = ferry::split(comm, table);
      const auto parts = ferry::split(comm, expected);
      ferry::copy(exec, parts, mine).wait();
      comm.barrier();
      expect(same_bits(table.data(), expected.data(), table.size()), "what the others wrote");
      ferry::tensor<float, host> out("out", ids.size(), width), same("same", ids.size(), width);
      ferry::gather(exec, table, ids, out).wait();
      ferry::gather(exec, expected, ids, same).wait();
      expect(same_bits(out.data(), same.data(), out.size()), "gathered rows");
      const auto bytes = rows * width * sizeof(float);
      expect(held("ferry::tensor::features") == std::pair<std::size_t, std::size_t>(bytes, 1),
             "one allocation");
      expect(table.describe().find("memory that ranks share") != std::string::npos, table.describe().c_str());
      {  // the rank that made it may go first
        const auto moved = std::move(table);
        if (rank != 0) comm.barrier();
        expect(same_bits(moved.data(), expected.data(), moved.size()), "after rank 0 has left");
      }
      if (rank == 0) comm.barrier();
    });
    REQUIRE(held("ferry::tensor::features").second == 0);
  }
}

TEST_CASE("a shared tensor is a table for steps and for one thread", "[distributed]") {
  const exec_space exec;
  const auto comm = group_of(2);
  ferry::shared_tensor<float> table("w", comm, 40, width);
  ferry::tensor<float, host> plain("plain", 40, width);
  ferry::init::uniform(exec, table, -1, 1, 4);
  ferry::init::uniform(exec, plain, -1, 1, 4);
  const ferry::optim::adam rule{.lr = 0.1};
  auto state = ferry::optim::make_state(rule, table);
  auto twin_state = ferry::optim::make_state(rule, plain);
  const std::vector<int> rows{1, 5, 1, 39};
  ferry::tensor<float, host> grads("grads", 4, width);
  ferry::init::uniform(exec, grads, -1, 1, 5);
  ferry::step(exec, rule, table, state, rows, grads).wait();
  ferry::step(exec, rule, plain, twin_state, rows, grads).wait();
  REQUIRE(same_bits(table.data(), plain.data(), plain.size()));
  table(3, 2) = 8;
  REQUIRE(table.rows_between(3, 4)(0, 2) == 8);
}

TEST_CASE("a shared tensor that does not fit is refused before it is used", "[distributed]") {
  const watchdog guard("shortage of shared memory");
  const auto comm = group_of(3);
  comm.run([&](int rank) {
    const auto make = [&](std::int64_t rows) { ferry::shared_tensor<float>("huge", comm, rows, 1024); };
    const auto huge = [&] { make(std::int64_t{1} << 40); };
    if (rank == 0)
      expect(said<ferry::bad_alloc>(huge).find("bytes of shared memory for 'huge'") != std::string::npos,
             "bad_alloc");
    else
      expect(said<ferry::peer_error>(huge).find("rank 0 failed") != std::string::npos, "peer_error");
    expect(!said<ferry::invalid_argument>([&] { make(-1); }).empty(), "negative extents");
    comm.barrier();
    ferry::shared_tensor<float> none("none", comm, 0, 7);
    expect(none.rows() == 0 && none.width() == 7, "no rows");
    expect(!said<ferry::protocol_error>([&] { make(5 + rank); }).empty(), "different extents");
  });
  REQUIRE(held("ferry::tensor::huge").second == 0);
}

}  // namespace ferry_test::shared_tensor_test
