// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <ferry/bags.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

/// Rows between the devices of one process: what the counters of transfers saw, and other devices than those
/// of the instances that a caller passes.
namespace ferry_test::device_exchange_cuda_test {

namespace {

using device = ferry::device_space;

std::vector<std::vector<int>> groups() {
  std::vector<std::vector<int>> result{{0, 0}, {0, 0, 0}};
  const auto count = static_cast<int>(ferry::devices().size());
  for (int ranks = 2; ranks <= count; ++ranks) {
    result.push_back(all_in_turn(ranks));
    auto& backwards = result.emplace_back();  // from the last device on, which comes twice
    for (int r = 0; r < ranks; ++r) backwards.push_back(count - 1 - r);
    backwards.push_back(count - 1);
  }
  return result;
}

ferry::communicator group_on(const std::vector<int>& ids) {
  return ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)});
}

std::vector<float> contents(const Kokkos::Cuda& exec, const auto& array) {
  std::vector<float> read(array.size());
  ferry::copy(exec, array, read).wait();
  return read;
}

/// Transfers between spaces other than device memory.
std::string transfers_with_host() {
  std::string path_name;
  for (const auto& transfer : ferry::transfer_statistics())
    if (transfer.bytes != 0 && (transfer.from != "device_space" || transfer.to != "device_space"))
      path_name.append(transfer.from).append(" to ").append(transfer.to).append("; ");
  return path_name;
}

/// The current device of the thread, which nothing here may change.
int current_device() {
  int number = -1;
  expect(cudaGetDevice(&number) == cudaSuccess, "the current device");
  return number;
}

}  // namespace

TEST_CASE("rows between devices of a process do not pass through host memory", "[devices]") {
  const watchdog guard("no host memory");
  auto random = generator(101);
  const Kokkos::Cuda first;
  const ferry::optim::adam adam{.lr = 1e-2};
  for (const auto& ids : groups()) {
    const auto ranks = static_cast<int>(ids.size());
    INFO(ranks << " ranks, the last one on device " << ids.back());
    const auto comm = group_on(ids);
    const std::size_t rows = 150;
    const batches<float> batch(random, ranks, rows, 400);
    ferry::tensor<float, device> table("w", rows, width);
    ferry::sharded_table<float, device> big("w", comm, rows, width);
    ferry::init::uniform(first, table, -1, 1, 5);
    ferry::init::uniform(first, big, -1, 1, 5);
    auto state = ferry::optim::make_state(adam, table);
    auto states = ferry::optim::make_state(adam, big);
    const std::vector<float> before = contents(first, table);
    std::string with_host;
    comm.run([&](int rank, const auto& exec) {
      const auto home = comm.device(rank);
      const auto& mine = batch.indices_of(rank);
      ferry::tensor<float, device> grads("grads", home, mine.size(), width),
          out("out", home, mine.size(), width), unique_rows("once", home, mine.size(), width),
          part("part", home, mine.size(), width), whole("whole", home, batch.rows.size(), width),
          sum("sum", home, 1001), model("model", home, 77, width);
      ferry::copy(exec, batch.values_of(rank), grads).wait();
      ferry::init::constant(exec, sum, rank + 1);
      ferry::init::constant(exec, model, rank);
      const auto plan = ferry::make_plan(exec, mine, big);
      exec.fence("the arrays are made");
      const int current = current_device();
      comm.barrier();
      if (rank == 0) ferry::reset_transfer_statistics();
      comm.barrier();
      ferry::gather(exec, big, mine, out).wait();
      ferry::gather(exec, big, plan, unique_rows, ferry::path::exchange{}).wait();
      ferry::step(exec, adam, big, states, mine, grads).wait();
      ferry::scatter_add(exec, big, plan, grads, ferry::reduce::by_rank{}).wait();
      ferry::all_reduce(exec, comm, sum).wait();
      ferry::replicate(exec, comm, model, ranks - 1).wait();
      ferry::concatenate(exec, comm, grads, whole).wait();
      comm.barrier();
      if (rank == 0) with_host = transfers_with_host();
      comm.barrier();
      expect(current_device() == current, "the thread's current device");
      const auto got = contents(exec, out), repeat = contents(exec, unique_rows);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const auto row = static_cast<std::size_t>(mine[i / width]);
        expect(got[i] == before[row * width + i % width] && repeat[i] == got[i], "gathered rows");
      }
      expect(contents(exec, sum) == std::vector<float>(1001, static_cast<float>(ranks * (ranks + 1) / 2)),
             "the sum");
      expect(contents(exec, model) == std::vector<float>(77 * width, static_cast<float>(ranks - 1)),
             "the model");
      const auto content = contents(exec, whole);
      expect(same_bits(content.data(), batch.whole.data(), content.size()), "all parts");
    });
    CHECK(with_host == "");
    ferry::step(first, adam, table, state, batch.rows, batch.whole).wait();
    std::vector<float> first_content = contents(first, table), second_content(table.size());
    {
      // reduce::by_rank sums locally first: compare with the same additions of an ordinary table.
      for (int r = 0; r < ranks; ++r) {
        std::vector<float> local(table.size(), 0.0f);
        std::vector<bool> named(rows, false);
        const auto& mine = batch.indices_of(r);
        for (std::size_t p = 0; p < mine.size(); ++p) {
          named[static_cast<std::size_t>(mine[p])] = true;
          for (std::size_t c = 0; c < width; ++c)
            local[static_cast<std::size_t>(mine[p]) * width + c] += batch.values_of(r).data()[p * width + c];
        }
        if (r == 0) second_content.assign(table.size(), 0.0f);
        for (std::size_t i = 0; i < local.size(); ++i)
          if (named[i / width]) second_content[i] += local[i];
      }
    }
    ferry::tensor<float, host> read("read", rows, width);
    ferry::copy(first, big, read).wait();
    double worst = 0;
    for (std::size_t i = 0; i < first_content.size(); ++i)
      worst = std::max(worst,
                       std::abs(static_cast<double>(read.data()[i]) - first_content[i] - second_content[i]));
    CHECK(worst < 1e-3);  // to tell apart from rows that did not come; bits are the business of other tests
  }
}

TEST_CASE("the pooled rows of bags pass between devices", "[devices]") {
  const watchdog guard("bags of devices");
  auto random = generator(102);
  const Kokkos::Cuda first;
  const ferry::optim::sgd sgd{.lr = 0.5};
  for (const auto& ids : groups()) {
    const auto ranks = static_cast<int>(ids.size());
    const auto comm = group_on(ids);
    const std::size_t rows = 90, bags = 33;
    INFO(ranks << " ranks");
    ferry::tensor<float, device> table("w", rows, width);
    ferry::sharded_table<float, device> big("w", comm, rows, width);
    ferry::init::uniform(first, table, -1, 1, 9);
    ferry::init::uniform(first, big, -1, 1, 9);
    auto states = ferry::optim::make_state(sgd, big);
    std::vector<std::vector<std::int64_t>> named;
    std::vector<std::int64_t> offsets(bags);
    for (int r = 0; r < ranks; ++r) named.push_back(indices<std::int64_t>(random, bags * 3, rows));
    for (std::size_t b = 0; b < bags; ++b) offsets[b] = static_cast<std::int64_t>(3 * b);
    comm.run([&](int rank, const auto& exec) {
      const auto home = comm.device(rank);
      const auto& mine = named[static_cast<std::size_t>(rank)];
      ferry::tensor<float, device> pooled("pooled", home, bags, width), alone("alone", home, bags, width),
          copy("w", home, rows, width);
      ferry::init::uniform(exec, copy, -1, 1, 9);
      ferry::gather_bags(exec, big, mine, offsets, pooled, ferry::pooling::mean{}).wait();
      ferry::gather_bags(exec, copy, mine, offsets, alone, ferry::pooling::mean{}).wait();
      expect(contents(exec, pooled) == contents(exec, alone), "pooled rows");
      ferry::init::constant(exec, pooled, 3);
      comm.barrier();
      ferry::step_bags(exec, sgd, big, states, mine, offsets, pooled, ferry::pooling::mean{}).wait();
    });
    std::vector<float> expected = contents(first, table);
    std::vector<int> times(rows, 0);
    for (const auto& array : named)
      for (const std::int64_t row : array) ++times[static_cast<std::size_t>(row)];
    ferry::tensor<float, host> read("read", rows, width);
    ferry::copy(first, big, read).wait();
    for (std::size_t i = 0; i < expected.size(); ++i)  // a third of 3 for each naming, times lr
      REQUIRE(std::abs(read.data()[i] - (expected[i] - 0.5f * static_cast<float>(times[i / width]))) < 1e-4f);
  }
}

TEST_CASE("ranks may pass an instance of another device, and one thread may act for all devices",
          "[devices]") {
  const watchdog guard("instances elsewhere");
  auto random = generator(103);
  const Kokkos::Cuda first;
  for (const auto& ids : groups()) {
    const auto ranks = static_cast<int>(ids.size());
    INFO(ranks << " ranks, the last one on device " << ids.back());
    const auto comm = group_on(ids);
    const std::size_t rows = 70;
    const batches<float> batch(random, ranks, rows, 100);
    const auto check = [&](auto spread) {
      ferry::tensor<float, device> table("w", rows, width);
      ferry::sharded_table<float, device, decltype(spread)> big("w", comm, rows, width, spread);
      ferry::init::uniform(first, table, -1, 1, 6);
      ferry::init::uniform(first, big, -1, 1, 6);
      const auto place = ferry::device_of(first);
      ferry::tensor<float, device> content("all", batch.rows.size(), width),
          out("out", batch.rows.size(), width);
      ferry::copy(first, batch.whole, content).wait();
      const auto expected = contents(first, ferry::gather<device>(first, table, batch.rows).get());
      ferry::gather(first, big, batch.rows, out).wait();  // for the group
      CHECK(contents(first, out) == expected);
      std::vector<std::vector<float>> got(ids.size());
      comm.run([&](int rank) {  // all ranks by instances of the first device
        const Kokkos::Cuda& exec = first;
        const auto& mine = batch.indices_of(rank);
        ferry::tensor<float, device> rows_here("rows", place, mine.size(), width),
            values_here("values", place, mine.size(), width);
        ferry::gather(exec, big, mine, rows_here).wait();
        got[static_cast<std::size_t>(rank)] = contents(exec, rows_here);
        ferry::copy(exec, batch.values_of(rank), values_here).wait();
        comm.barrier();
        ferry::scatter_add(exec, big, mine, values_here).wait();
      });
      std::vector<float> together;
      for (const auto& part : got) together.insert(together.end(), part.begin(), part.end());
      CHECK(together == expected);
      ferry::scatter_add(first, table, batch.rows, batch.whole).wait();
      ferry::scatter_add(first, big, batch.rows, content).wait();
      ferry::scatter_add(first, table, batch.rows, content).wait();
      ferry::tensor<float, host> read("read", rows, width);
      ferry::copy(first, big, read).wait();
      const auto right = contents(first, table);
      CHECK(same_bits(read.data(), right.data(), right.size()));
    };
    check(ferry::sharding::cyclic{});
    check(ferry::sharding::replicated{});
  }
}

}  // namespace ferry_test::device_exchange_cuda_test
