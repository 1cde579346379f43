// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.hpp"
#include "support/test.hpp"
#include "support/waiting_kernel_cuda.hpp"

#include <cuda_runtime.h>

#include <set>

/// Work that must go on while kernels of others wait, and while streams of others are captured.
namespace ferry_test::next_to_waiting_cuda_test {

constexpr std::int64_t rows = 1'000'000;

int multiprocessors() {
  return ferry::cuda::attribute(cudaDevAttrMultiProcessorCount, ferry::cuda::default_device());
}

/// Indices on the device, and how many distinct ones there are.
struct batch {
  batch(std::size_t count, unsigned int seed) : ids("which", count) {
    auto random = generator(seed);
    const auto chosen = indices<std::int64_t>(random, count, rows);
    distinct = static_cast<std::int64_t>(std::set<std::int64_t>(chosen.begin(), chosen.end()).size());
    put(ids, chosen);
  }
  ferry::tensor<std::int64_t, ferry::device_space> ids;
  std::int64_t distinct = 0;
};

class own_stream {
 public:
  explicit own_stream(unsigned int flags) { make(flags); }
  own_stream(const own_stream&) = delete;
  own_stream& operator=(const own_stream&) = delete;
  ~own_stream() { cudaStreamDestroy(handle_); }
  [[nodiscard]] cudaStream_t handle() const { return handle_; }

 private:
  void make(unsigned int flags) { REQUIRE(cudaStreamCreateWithFlags(&handle_, flags) == cudaSuccess); }

  cudaStream_t handle_ = nullptr;
};

std::size_t bytes_of_reports() {
  for (const auto& entry : ferry::memory_by_label<ferry::device_space>())
    if (std::string_view(entry.label) == "ferry::reports") return entry.current;
  return 0;
}

TEST_CASE("plans of every size are made while others' kernels fill half of the multiprocessors",
          "[waiting]") {
  const exec_space exec;
  const auto processors = static_cast<std::size_t>(multiprocessors());
  const auto threads = static_cast<std::size_t>(ferry::cuda::grid_sort::threads);
  std::vector<std::size_t> counts{100, 2048, 4096, 4097};
  for (std::size_t items = 1; items <= ferry::cuda::grid_sort::most_items; items *= 2)
    for (const std::size_t count : {processors * threads * items, processors * threads * items + 1})
      counts.push_back(count);
  std::vector<batch> batches;
  for (const std::size_t count : counts)
    batches.emplace_back(count, static_cast<unsigned int>(3 + batches.size()));
  ferry::tensor<std::byte, ferry::device_space> workspace(
      "workspace", ferry::plan_workspace_bytes(exec, static_cast<std::int64_t>(counts.back()), rows));
  // Kernels and objects that are loaded or made at first use would wait for the whole device.
  for (const auto& lot : batches)
    CHECK(ferry::make_plan(exec, lot.ids, rows, workspace).unique_count() == lot.distinct);

  const own_stream other_stream(cudaStreamNonBlocking);
  const waiting_kernel waiter(other_stream.handle(), multiprocessors() / 2);
  for (const auto& lot : batches) {
    CAPTURE(lot.ids.size());
    CHECK(ferry::make_plan(exec, lot.ids, rows, workspace).unique_count() == lot.distinct);
    REQUIRE(waiter.waits());
  }
}

TEST_CASE("what the host reads does not wait for the legacy default stream", "[waiting]") {
  const exec_space exec;
  const batch lot(5000, 17);
  const auto plan = ferry::make_plan(exec, lot.ids, rows);
  CHECK(plan.unique_count() == lot.distinct);
  const waiting_kernel waiter(cudaStreamLegacy, 1);
  CHECK(plan.unique_count() == lot.distinct);
  CHECK(waiter.waits());
}

TEST_CASE("a bad index is told while others' work fills the legacy default stream", "[waiting]") {
  const own_stream queue(cudaStreamNonBlocking);  // a blocking one comes after the legacy stream by itself
  const exec_space exec(queue.handle());
  const auto table = make<ferry::device_space>("table", 10, 1, std::vector<float>(10, 1.0f));
  ferry::tensor<float, ferry::device_space> out("out", 2, 1);
  const auto bad = make<ferry::device_space>("bad", std::vector<std::int64_t>{3, 10});
  const auto good = make<ferry::device_space>("good", std::vector<std::int64_t>{3, 9});
  CHECK_THROWS_AS(ferry::gather(exec, table, bad, out).wait(), ferry::out_of_range);
  const waiting_kernel waiter(cudaStreamLegacy, 1);
  CHECK_THROWS_AS(ferry::gather(exec, table, bad, out).wait(), ferry::out_of_range);
  CHECK_NOTHROW(ferry::gather(exec, table, good, out).wait());
  CHECK(waiter.waits());
}

TEST_CASE("the thread's own stream can be captured, also while reports are made", "[waiting][graph]") {
  auto random = generator(87);
  constexpr std::size_t n = 150, width = 20, few = 400;
  const exec_space exec(cudaStreamPerThread);
  const auto content = values<float>(random, few * width);
  const auto ids = indices<std::int64_t>(random, n, few);
  const auto table = make<ferry::device_space>("table", few, width, content);
  const auto chosen = make<ferry::device_space>("which", ids);
  ferry::tensor<float, ferry::device_space> out("out", n, width);
  ferry::gather(exec, table, chosen, out).wait();
  put(out, std::vector<float>(n * width, -1.0f));
  const auto plan = ferry::make_plan(Kokkos::Cuda{}, chosen, few);
  const auto distinct = static_cast<std::int64_t>(std::set<std::int64_t>(ids.begin(), ids.end()).size());
  CHECK(plan.unique_count() == distinct);

  const std::size_t reports = bytes_of_reports();
  std::vector<ferry::ticket> tickets;
  std::int64_t counted = 0;
  REQUIRE(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  while (tickets.size() < 20000 && bytes_of_reports() == reports)
    tickets.push_back(ferry::gather(exec, table, chosen, out));
  counted = plan.unique_count();
  cudaGraph_t captured = nullptr;
  REQUIRE(cudaStreamEndCapture(cudaStreamPerThread, &captured) == cudaSuccess);
  CHECK(bytes_of_reports() > reports);
  CHECK(counted == distinct);
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaGraphInstantiate(&executable, captured, 0) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(captured) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(executable, cudaStreamPerThread) == cudaSuccess);
  tickets.back().wait();
  CHECK(same_bits(take(out), gathered(content, width, ids, std::vector<float>(n * width))));
  tickets.clear();
  CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
}

}  // namespace ferry_test::next_to_waiting_cuda_test
