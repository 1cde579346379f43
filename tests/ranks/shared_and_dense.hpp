// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags.hpp>
#include <ferry/distributed.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

/// Bags, sums by rank, dense arrays and shared tensors over processes. `expect(holds, what)` reports.
namespace ferry_test {

template <class Expect>
void share(const ferry::communicator& comm, const Expect& expect) {
  const Kokkos::DefaultExecutionSpace exec;
  const int acting = comm.rank() < 0 ? 0 : comm.rank(), ranks = comm.size();
  ferry::tensor<float, ferry::mapped_space> expected("expected", 1001, 7);
  ferry::init::uniform(exec, expected, -1, 1, 9);
  for (int turn = 0; turn < 3; ++turn) {
    ferry::shared_tensor<float> table("features", comm, 1001, 7);
    expect(table(0, 0) == 0 && table(1000, 6) == 0, "zeros");
    comm.barrier();
    auto mine = ferry::split(comm, table);
    ferry::copy(exec, ferry::split(comm, expected), mine).wait();
    comm.barrier();
    expect(std::memcmp(table.data(), expected.data(), table.size() * sizeof(float)) == 0, "shared rows");
    comm.barrier();
    if (acting == ranks - 1) table(turn, 0) = 77;
    comm.barrier();
    expect(table(turn, 0) == 77, "a write of the last rank");
    comm.barrier();
  }
  std::string text;
  try {
    const ferry::shared_tensor<float> huge("huge", comm, std::int64_t{1} << 45, 128);
  } catch (const ferry::bad_alloc& said) {
    text = std::string("bad_alloc ") + said.what();
  } catch (const ferry::peer_error& said) {
    text = std::string("peer_error ") + said.what();
  }
  expect(text.find(acting == 0 ? "bad_alloc ferry::shared_tensor" : "peer_error") == 0,
         "a shortage: " + text);
}

template <class Expect>
void bags_and_dense(const ferry::communicator& comm, const Expect& expect) {
  using tensor = ferry::tensor<float, ferry::mapped_space>;
  const Kokkos::DefaultExecutionSpace exec;
  const auto acting = static_cast<std::size_t>(comm.rank() < 0 ? 0 : comm.rank());
  const auto ranks = static_cast<std::size_t>(comm.size());
  constexpr std::size_t rows = 203, width = 7;
  std::mt19937_64 random(17);  // the same on all ranks
  ferry::sharded_table<float, ferry::mapped_space> big("w", comm, rows, width);
  tensor table("w", rows, width), read("read", rows, width);
  ferry::init::uniform(exec, big, -1, 1, 3);
  ferry::init::uniform(exec, table, -1, 1, 3);
  const ferry::optim::adagrad rule{.lr = 0.1};
  auto state = ferry::optim::make_state(rule, big);
  auto plain = ferry::optim::make_state(rule, table);
  for (int turn = 0; turn < 4; ++turn) {
    std::vector<std::int64_t> ids, offsets{0}, mine, rank_offsets{0};
    std::size_t bags = 0, first = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      if (r == acting) first = bags;
      const std::size_t count = random() % 20;
      for (std::size_t b = 0; b < count; ++b, ++bags) {
        for (std::size_t p = random() % 6; p > 0; --p) {
          ids.push_back(static_cast<std::int64_t>(random() % rows));
          if (r == acting) mine.push_back(ids.back());
        }
        offsets.push_back(static_cast<std::int64_t>(ids.size()));
        if (r == acting) rank_offsets.push_back(static_cast<std::int64_t>(mine.size()));
      }
    }
    tensor grads("grads", bags, width), pooled("pooled", bags, width),
        out("out", rank_offsets.size() - 1, width);
    ferry::init::uniform(exec, grads, -1, 1, static_cast<unsigned>(turn));
    const auto rank_grads = grads.rows_between(first, first + rank_offsets.size() - 1);
    ferry::step_bags(exec, rule, table, plain, ids, offsets, grads, ferry::pooling::mean{}).wait();
    ferry::step_bags(exec, rule, big, state, mine, rank_offsets, rank_grads, ferry::pooling::mean{}).wait();
    ferry::gather_bags(exec, table, ids, offsets, pooled, ferry::pooling::sum{}).wait();
    ferry::gather_bags(exec, big, mine, rank_offsets, out, ferry::pooling::sum{}, ferry::path::exchange{})
        .wait();
    expect(out.size() == 0 || std::memcmp(out.data(), pooled.data() + first * width, out.size() * 4) == 0,
           "pooled rows");
    // A plan whose rows come once, and sums by rank.
    const auto plan = ferry::make_plan(exec, mine, big);
    const auto gathered = ferry::gather<ferry::mapped_space>(exec, big, plan, ferry::path::exchange{}).get();
    const auto same = ferry::gather<ferry::mapped_space>(exec, table, mine).get();
    expect(gathered.size() == 0 || std::memcmp(gathered.data(), same.data(), gathered.size() * 4) == 0,
           "rows once");
    // Sums of small integers have the same bits in any order.
    ferry::init::constant(exec, big, 1);
    ferry::init::constant(exec, table, 1);
    tensor ones("ones", mine.size(), width), all_ones("ones", ids.size(), width);
    ferry::init::constant(exec, ones, 3);
    ferry::init::constant(exec, all_ones, 3);
    ferry::scatter_add(exec, big, plan, ones, ferry::reduce::by_rank{}).wait();
    ferry::scatter_add(exec, table, ids, all_ones).wait();
  }
  ferry::copy(exec, big, read).wait();
  expect(std::memcmp(read.data(), table.data(), read.size() * 4) == 0, "the table");

  tensor batch("batch", acting == ranks - 1 ? 10 : 0, width), whole("whole", 10, width);
  ferry::init::constant(exec, batch, 5);
  const auto [begin, end] = ferry::split_range(10, static_cast<int>(acting), comm.size());
  tensor part("part", end - begin, width);
  ferry::split(exec, comm, batch, part, comm.size() - 1).wait();
  ferry::concatenate(exec, comm, part, whole).wait();
  expect(whole(0, 0) == 5 && whole(9, width - 1) == 5, "a batch in parts and whole");
  ferry::init::constant(exec, whole, static_cast<double>(acting));
  ferry::replicate(exec, comm, whole, comm.size() - 1).wait();
  expect(whole(3, 3) == static_cast<float>(ranks - 1), "replicas");
}

}  // namespace ferry_test
