// SPDX-License-Identifier: Apache-2.0
#include "../../src/io/marks_on.hpp"
#include "support/arrays.hpp"
#include "support/random.hpp"

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

/// Marks of changed rows that a graph repeats, and that are taken while kernels set others.
namespace ferry_test::changed_rows_cuda_test {

namespace {

using ferry::detail::changed_rows;
using rows_of = std::set<std::int64_t>;

constexpr std::size_t rows = 5000, width = 8, n = 60;

void check(cudaError_t status) {
  CAPTURE(cudaGetErrorString(status));
  REQUIRE(status == cudaSuccess);
}

template <class Table>
std::shared_ptr<changed_rows> marks_of(Table& table) {
  const auto memory = ferry::detail::memory_of(ferry::make_ref(table));
  auto marks =
      std::make_shared<changed_rows>(memory, ferry::detail::device_marks_for<Kokkos::Cuda>(memory.rows));
  table.accesses()->keep_changes_in(marks);
  return marks;
}
rows_of marked(changed_rows& marks) {
  rows_of set;
  const auto& words = marks.take();
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] != 0) set.insert(static_cast<std::int64_t>(i));
  marks.drop();
  return set;
}

}  // namespace

TEST_CASE("each launch of a graph marks the rows that it writes", "[io][checkpoint]") {
  auto random = generator(521);
  cudaStream_t handle = nullptr;
  check(cudaStreamCreate(&handle));
  {
    const Kokkos::Cuda exec(handle);
    ferry::tensor<float, ferry::device_space> table("table", rows, width), batch("batch", n, width);
    ferry::tensor<std::int64_t, ferry::device_space> ids("which", n);
    ferry::init::zeros(exec, table);
    ferry::init::zeros(exec, batch);
    ferry::init::zeros(exec, ids);
    ferry::init::zeros(exec, table);
    const auto marks = marks_of(table);
    // Kernels are loaded before the capture.
    put(ids, indices<std::int64_t>(random, n, rows));
    const auto plan = ferry::make_plan(exec, ids, rows);
    const auto planned_rows = take(ids);
    ferry::scatter(exec, table, plan, batch).wait();
    ferry::scatter(exec, table, ids, batch, ferry::duplicates::assume_unique{}, ferry::path::direct{}).wait();
    ferry::copy(exec, batch, table.first(n)).wait();
    marked(*marks);
    for (const bool planned : {true, false}) {
      CAPTURE(planned);
      ferry::ticket ticket;
      check(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal));
      if (planned)
        ticket = ferry::scatter(exec, table, plan, batch);
      else
        ticket = ferry::scatter(exec, table, ids, batch, ferry::duplicates::assume_unique{},
                                ferry::path::direct{});
      ferry::copy(exec, batch, table.first(n)).detach();
      cudaGraph_t captured = nullptr;
      check(cudaStreamEndCapture(handle, &captured));
      cudaGraphExec_t executable = nullptr;
      check(cudaGraphInstantiate(&executable, captured, 0));
      check(cudaGraphDestroy(captured));
      CHECK(marked(*marks).empty());
      for (int launch = 0; launch < 3; ++launch) {
        const auto named = indices<std::int64_t>(random, n, rows);
        put(ids, named);
        check(cudaGraphLaunch(executable, handle));
        ticket.wait();
        rows_of expected;
        for (std::size_t i = 0; i < n; ++i) expected.insert(static_cast<std::int64_t>(i));
        for (const auto row : planned ? planned_rows : named) expected.insert(row);
        CHECK(marked(*marks) == expected);
        CHECK(marks->is_trusted());
      }
      check(cudaGraphExecDestroy(executable));
    }
  }
  check(cudaStreamDestroy(handle));
}

TEST_CASE("marks of several instances are taken meanwhile, and none is lost", "[io][checkpoint]") {
  ferry::tensor<float, ferry::device_space> table("table", rows, width);
  const Kokkos::Cuda exec;
  ferry::init::zeros(exec, table);
  const auto marks = marks_of(table);
  const auto instances = Kokkos::Experimental::partition_space(exec, 1, 1, 1);
  std::vector<rows_of> named(instances.size());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < instances.size(); ++t)
    threads.emplace_back([&, t] {
      auto random = generator(530 + t);
      ferry::tensor<float, ferry::device_space> batch("batch", n, width);
      ferry::init::zeros(instances[t], batch);
      for (int turn = 0; turn < 200; ++turn) {
        const auto ids = indices<std::int32_t>(random, n, rows);
        for (const auto row : ids) named[t].insert(row);
        ferry::scatter_add(instances[t], table, ids, batch).wait();
      }
    });
  rows_of rows_read;
  for (int turn = 0; turn < 200; ++turn) rows_read.merge(marked(*marks));
  for (auto& thread : threads) thread.join();
  rows_read.merge(marked(*marks));
  rows_of expected;
  for (auto& part : named) expected.merge(part);
  CHECK(rows_read == expected);
}

}  // namespace ferry_test::changed_rows_cuda_test
