// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ranks/rank_program.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

/// Dense arrays and shared tensors over processes.
namespace ferry_test {

inline void share(const ferry::communicator& comm) {
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

inline void dense(const ferry::communicator& comm) {
  using tensor = ferry::tensor<float, ferry::mapped_space>;
  const Kokkos::DefaultExecutionSpace exec;
  const auto acting = static_cast<std::size_t>(comm.rank() < 0 ? 0 : comm.rank());
  const auto ranks = static_cast<std::size_t>(comm.size());
  constexpr std::size_t columns = 7;
  tensor batch("batch", acting == ranks - 1 ? 10 : 0, columns), whole("whole", 10, columns);
  ferry::init::constant(exec, batch, 5);
  const auto [begin, end] = ferry::split_range(10, static_cast<int>(acting), comm.size());
  tensor part("part", end - begin, columns);
  ferry::split(exec, comm, batch, part, comm.size() - 1).wait();
  ferry::concatenate(exec, comm, part, whole).wait();
  expect(whole(0, 0) == 5 && whole(9, columns - 1) == 5, "a batch in parts and whole");
  ferry::init::constant(exec, whole, static_cast<double>(acting));
  ferry::replicate(exec, comm, whole, comm.size() - 1).wait();
  expect(whole(3, 3) == static_cast<float>(ranks - 1), "replicas");
}

}  // namespace ferry_test
