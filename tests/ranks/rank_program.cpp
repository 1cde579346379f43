// SPDX-License-Identifier: Apache-2.0
#include "ranks/rank_program.hpp"

#include "ranks/checkpoints.hpp"
#include "ranks/device_ranks.hpp"
#include "ranks/lane_ranks.hpp"
#include "ranks/shared_and_dense.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ferry_test {

namespace {

using exec_space = Kokkos::DefaultExecutionSpace;
using host = ferry::mapped_space;
constexpr std::size_t rows = 203, width = 7;

struct batch {
  std::vector<std::int64_t> indices;
  ferry::tensor<float, host> values;
};
batch made(std::mt19937_64& random, std::size_t count) {
  batch result{std::vector<std::int64_t>(count), ferry::tensor<float, host>("values", count, width)};
  for (auto& index : result.indices)
    index = static_cast<std::int64_t>(random() % (random() % 2 == 0 ? 9 : rows));
  for (std::size_t i = 0; i < result.values.size(); ++i)
    result.values.data()[i] = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  return result;
}
batch joined(const std::vector<batch>& batches) {
  std::size_t count = 0;
  for (const batch& part : batches) count += part.indices.size();
  batch result{{}, ferry::tensor<float, host>("values", count, width)};
  std::size_t position = 0;
  for (const batch& part : batches) {
    result.indices.insert(result.indices.end(), part.indices.begin(), part.indices.end());
    if (part.values.size() != 0)
      std::memcpy(result.values.data() + position, part.values.data(), part.values.size() * sizeof(float));
    position += part.values.size();
  }
  return result;
}

template <class Spread>
void train(const exec_space& exec, const ferry::communicator& comm, Spread spread) {
  std::mt19937_64 random(7);
  ferry::sharded_table<float, host, Spread> big("w", comm, rows, width, spread);
  ferry::tensor<float, host> table("w", rows, width), read("read", rows, width);
  ferry::init::uniform(exec, big, -1, 1, 3);
  ferry::init::uniform(exec, table, -1, 1, 3);
  const ferry::optim::adam rule{.lr = 0.01};
  auto state = ferry::optim::make_state(rule, big);
  auto plain = ferry::optim::make_state(rule, table);
  for (int turn = 0; turn < 5; ++turn) {
    std::vector<batch> batches;
    for (int r = 0; r < comm.size(); ++r) batches.push_back(made(random, random() % 40));
    const batch& mine = batches[static_cast<std::size_t>(world_rank)];
    const batch whole = joined(batches);
    ferry::step(exec, rule, table, plain, whole.indices, whole.values).wait();
    ferry::scatter_add(exec, table, whole.indices, whole.values).wait();
    const auto plan = ferry::make_plan(exec, mine.indices, big);
    ferry::step(exec, rule, big, state, plan, mine.values).wait();
    ferry::scatter_add(exec, big, mine.indices, mine.values).wait();
    ferry::tensor<float, host> out("out", mine.indices.size(), width),
        same("same", mine.indices.size(), width);
    ferry::gather(exec, big, plan, out).wait();
    ferry::gather(exec, table, mine.indices, same).wait();
    expect(out.size() == 0 || std::memcmp(out.data(), same.data(), out.size() * sizeof(float)) == 0,
           "gathered rows");
  }
  ferry::copy(exec, big, read).wait();
  expect(std::memcmp(read.data(), table.data(), read.size() * sizeof(float)) == 0,
         "the table, " + std::string(Spread::name));
}

/// `another(options)` makes a new group of all ranks.
/// Values that go with the words of a call, and those that are too large for it.
template <std::size_t Bytes>
void gather_values(const ferry::communicator& comm) {
  std::array<unsigned char, Bytes> mine{};
  const auto byte_of = [](std::size_t rank, std::size_t i) {
    return static_cast<unsigned char>((rank * 37 + i * 11 + Bytes) % 251);
  };
  for (std::size_t i = 0; i < Bytes; ++i) mine[i] = byte_of(static_cast<std::size_t>(world_rank), i);
  for (int turn = 0; turn < 3; ++turn) {
    const auto values = comm.all_gather(mine);
    bool holds = std::ssize(values) == comm.size();
    for (std::size_t r = 0; holds && r < values.size(); ++r)
      for (std::size_t i = 0; i < Bytes; ++i) holds = holds && values[r][i] == byte_of(r, i);
    expect(holds, "all_gather of " + std::to_string(Bytes) + " bytes");
    comm.barrier();
  }
}

void fail(const exec_space& exec, const ferry::communicator& comm, const group_maker& make_group) {
  const bool last = world_rank == comm.size() - 1;
  const std::string name = "rank " + std::to_string(comm.size() - 1);
  ferry::sharded_table<float, host> big("w", comm, rows, width);
  ferry::init::zeros(exec, big);
  ferry::tensor<float, host> values("values", 2, width), wide("wide", 2, width + 1);
  ferry::init::zeros(exec, values);
  const std::vector<std::int64_t> good{1, 2}, bad{1, last ? 999 : 2};
  auto text = said<ferry::out_of_range>([&] { ferry::scatter(exec, big, bad, values).wait(); });
  expect(has(text, "index 999 at position 1"), "a bad index: " + text);
  if (comm.size() == 1) return;
  expect(has(text, name), "the rank of a bad index: " + text);
  text = last ? said<ferry::invalid_argument>([&] { ferry::gather(exec, big, good, wide).wait(); })
              : said<ferry::peer_error>([&] { ferry::gather(exec, big, good, values).wait(); });
  expect(has(text, "'wide'") && (last || has(text, name + " failed")), "wrong shapes: " + text);
  ferry::gather(exec, big, good, values).wait();  // the group serves on
  ferry::tensor<double, host> sum("sum", 5);
  ferry::init::constant(exec, sum, world_rank + 1);
  ferry::all_reduce(exec, comm, sum).wait();
  expect(sum(4) == comm.size() * (comm.size() + 1) / 2, "all_reduce");

  const auto protocol = make_group({});
  text = said<ferry::protocol_error>([&] {
    if (last)
      (void)protocol.all_gather(1);
    else
      protocol.barrier();
  });
  expect(has(text, "barrier") && has(text, "all_gather"), "different calls: " + text);
  expect(!said<ferry::protocol_error>([&] { protocol.barrier(); }).empty(), "a broken group");

  // Options of a rule: one that a rank refuses, then one that differs.
  const auto options = make_group({});
  ferry::sharded_table<float, host> trained("trained", options, rows, width);
  ferry::init::zeros(exec, trained);
  auto state = ferry::optim::make_state(ferry::optim::sgd{}, trained);
  const auto step_by = [&](double rate) {
    ferry::step(exec, ferry::optim::sgd{.lr = rate}, trained, state, good, values).wait();
  };
  text = last ? said<ferry::invalid_argument>([&] { step_by(-1); })
              : said<ferry::peer_error>([&] { step_by(0.1); });
  expect(has(text, "lr") && (last || has(text, name + " failed")), "a refused option: " + text);
  step_by(0.1);
  text = said<ferry::protocol_error>([&] { step_by(last ? 0.3 : 0.2); });
  expect(has(text, "step of 'trained'") && has(text, "they differ in the options"), "options: " + text);
  expect(state.steps() == 1, "steps that were refused");

  const auto thrown = make_group({});
  text = said<std::runtime_error>([&] {
    thrown.run([&] {
      thrown.barrier();
      if (last) throw std::runtime_error("the disk is full");
      for (int i = 0; i < 3; ++i) thrown.barrier();
    });
  });
  expect(has(text, "the disk is full"), "an exception: " + text);

  const auto late = make_group({.deadline = std::chrono::milliseconds(2000)});
  if (last) std::this_thread::sleep_for(std::chrono::milliseconds(4000));
  text = said<ferry::communication_error>([&] { late.barrier(); });  // the late rank learns of it
  expect(has(text, "2000 ms") && (last || has(text, "not there: " + name)), "a late rank: " + text);
  comm.barrier();
}

}  // namespace

void run_all(const group_maker& make_group) {
  const exec_space exec;
  try {
    const ferry::communicator comm = make_group({.deadline = std::chrono::seconds(30)});
    gather_values<1>(comm);
    gather_values<1023>(comm);
    gather_values<1024>(comm);
    gather_values<1025>(comm);
    gather_values<70000>(comm);
    train(exec, comm, ferry::sharding::cyclic{});
    train(exec, comm, ferry::sharding::hashed<5>{});
    train(exec, comm, ferry::sharding::replicated{});
    train(exec, comm, ferry::sharding::table_wise{.rank = comm.size() - 1});
    comm.run([&] { train(exec, comm, ferry::sharding::block{}); });
    const auto report = [](bool holds, const std::string& claim) { expect(holds, claim); };
    bags_and_dense(comm, report);
    share(comm, report);
    device_tables(comm);
    batches_in_lanes(comm, make_group);
    checkpoints(comm, make_group, report);
    fail(exec, comm, make_group);
  } catch (const std::exception& lost) {
    expect(false, lost.what());
  }
}

}  // namespace ferry_test
