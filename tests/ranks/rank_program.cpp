// SPDX-License-Identifier: Apache-2.0
#include "ranks/rank_program.hpp"

#include "ranks/checkpoints.hpp"
#include "ranks/shared_and_dense.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ferry_test {

namespace {

constexpr std::size_t rows = 203;

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
  const std::vector<std::int64_t> good{1, 2};
  if (comm.size() == 1) return;
  auto text = last ? said<ferry::invalid_argument>([&] { ferry::gather(exec, big, good, wide).wait(); })
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

  // An option of a rule that differs.
  const auto options = make_group({});
  ferry::sharded_table<float, host> trained("trained", options, rows, width);
  ferry::init::zeros(exec, trained);
  auto state = ferry::optim::make_state(ferry::optim::sgd{}, trained);
  const auto step_by = [&](double rate) {
    ferry::step(exec, ferry::optim::sgd{.lr = rate}, trained, state, good, values).wait();
  };
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
  count_failures([&] {
    const ferry::communicator comm = make_group({.deadline = std::chrono::seconds(30)});
    gather_values<1>(comm);
    gather_values<1023>(comm);
    gather_values<1024>(comm);
    gather_values<1025>(comm);
    gather_values<70000>(comm);
    dense(comm);
    share(comm);
    device_tables(comm);
    verbs(comm, make_group);
    checkpoints(comm, make_group);
    fail(exec, comm, make_group);
  });
}

}  // namespace ferry_test
