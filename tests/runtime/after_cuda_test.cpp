// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <cuda_runtime.h>

/// ferry::after between streams: it does not block, and does not touch a capture.
namespace ferry_test::after_cuda_test {

/// Waits on the device until the host raises the flag, for some ten seconds at most; result[0] = whether it did.
struct wait_for_flag {
  const volatile int* flag;
  int* result;
  KOKKOS_FUNCTION void operator()(int) const {
    int raised = 0;
    for (int tries = 0; tries < 10000000 && raised == 0; ++tries) raised = *flag;
    *result = raised;
  }
};

struct copy_number {
  const int* source;
  int* target;
  KOKKOS_FUNCTION void operator()(int) const { *target = *source; }
};

std::vector<Kokkos::Cuda> streams() {
  return Kokkos::Experimental::partition_space(Kokkos::Cuda{}, std::vector<int>(2, 1));
}

TEST_CASE("an instance is ordered after another without blocking the host", "[after]") {
  const auto exec = streams();
  auto flag = make<ferry::pinned_space>("flag", std::vector<int>{0});
  auto raised = make<ferry::device_space>("seen", std::vector<int>{-1});
  auto copied = make<ferry::device_space>("copied", std::vector<int>{-1});
  using policy = Kokkos::RangePolicy<Kokkos::Cuda>;
  // Loads the kernels, which may wait for the device.
  flag(0) = 1;
  Kokkos::parallel_for("ferry_test::wait", policy(exec[0], 0, 1), wait_for_flag{flag.data(), raised.data()});
  Kokkos::parallel_for("ferry_test::copy", policy(exec[1], 0, 1), copy_number{raised.data(), copied.data()});
  ferry::after(exec[1], exec[0]);
  for (const auto& instance : exec) instance.fence("ferry_test::after");
  flag(0) = 0;
  put(raised, {-1});
  put(copied, {-1});

  Kokkos::parallel_for("ferry_test::wait", policy(exec[0], 0, 1), wait_for_flag{flag.data(), raised.data()});
  ferry::after(exec[1], exec[0]);
  Kokkos::parallel_for("ferry_test::copy", policy(exec[1], 0, 1), copy_number{raised.data(), copied.data()});
  *static_cast<volatile int*>(flag.data()) = 1;  // the kernel gave up before if after() had waited for it
  exec[1].fence("ferry_test::after");
  CHECK(take(raised) == std::vector<int>{1});
  CHECK(take(copied) == std::vector<int>{1});
}

TEST_CASE("an instance that is being captured is not ordered, and the capture goes on", "[after][graph]") {
  const auto exec = streams();
  const auto table = make<ferry::device_space>("table", 4, 1, std::vector<float>{1, 2, 3, 4});
  const auto ids = make<ferry::device_space>("which", std::vector<std::int64_t>{2, 0});
  auto batch = make<ferry::device_space>("batch", 2, 1, std::vector<float>{-1, -1});
  ferry::gather(exec[0], table, ids, batch).wait();
  put(batch, {-1, -1});

  cudaStream_t stream = exec[0].cuda_stream();
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  auto ticket = ferry::gather(exec[0], table, ids, batch);
  CHECK_THROWS_MATCHES(ferry::after(exec[0], exec[1]), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("captured into a graph")));
  CHECK_THROWS_MATCHES(ferry::after(exec[1], exec[0]), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("captured into a graph")));
  CHECK_THROWS_AS(ferry::after(exec[1], ticket), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::clone(exec[0], table), ferry::invalid_argument);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphExec_t launchable = nullptr;
  REQUIRE(cudaGraphInstantiate(&launchable, graph, 0) == cudaSuccess);

  // The ticket of a captured verb stands for the launches so far.
  for (int launch = 0; launch < 3; ++launch) {
    put(batch, {-1, -1});
    ferry::tensor<float, ferry::pinned_space> result("result", 2, 1);
    REQUIRE(cudaGraphLaunch(launchable, stream) == cudaSuccess);
    ferry::after(exec[1], ticket);
    ferry::copy(exec[1], batch, result).wait();
    CHECK(result(0, 0) == 3.0f);
    CHECK(result(1, 0) == 1.0f);
  }
  exec[0].fence("ferry_test::after");
  cudaGraphExecDestroy(launchable);
  cudaGraphDestroy(graph);
}

}  // namespace ferry_test::after_cuda_test
