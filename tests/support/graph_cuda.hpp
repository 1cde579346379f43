// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <catch2/catch_test_macros.hpp>

#include <optional>

/// Streams of a test's own, and graphs of what it enqueues on them.
namespace ferry_test {

inline void check(cudaError_t status) {
  CAPTURE(cudaGetErrorString(status));
  REQUIRE(status == cudaSuccess);
}

/// A stream and a Kokkos instance on it.
class stream {
 public:
  explicit stream(unsigned int flags = cudaStreamDefault) {
    check(cudaStreamCreateWithFlags(&handle_, flags));
    exec_.emplace(handle_);
  }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream() {
    exec_.reset();
    cudaStreamDestroy(handle_);
  }
  [[nodiscard]] const Kokkos::Cuda& exec() const { return *exec_; }
  [[nodiscard]] cudaStream_t handle() const { return handle_; }

 private:
  cudaStream_t handle_ = nullptr;
  std::optional<Kokkos::Cuda> exec_;
};

/// Whatever work() enqueues, as a graph.
class graph {
 public:
  template <class Work>
  graph(const stream& queue, const Work& work) : stream_(queue.handle()) {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    work();
    cudaGraph_t captured = nullptr;
    check(cudaStreamEndCapture(stream_, &captured));
    check(cudaGraphGetNodes(captured, nullptr, &nodes_));
    check(cudaGraphInstantiate(&executable_, captured, 0));
    check(cudaGraphDestroy(captured));
  }
  graph(const graph&) = delete;
  graph& operator=(const graph&) = delete;
  ~graph() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
  }
  void launch() { check(cudaGraphLaunch(executable_, stream_)); }
  [[nodiscard]] std::size_t nodes() const { return nodes_; }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
  std::size_t nodes_ = 0;
};

}  // namespace ferry_test
