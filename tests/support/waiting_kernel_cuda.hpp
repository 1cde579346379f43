// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <thread>

/// Kernels that wait for the host, as those of communication libraries do.
namespace ferry_test {

/// In page-locked memory. Each word has one writer (gave_up: one value): links without atomic operations carry it, too.
struct waiting_flags {
  static constexpr int most_blocks = 1024;
  unsigned int released, gave_up, begun[most_blocks];
};

/// One thread of each block looks, at most `looks` times: a test that fails ends, too.
__global__ void wait_for_release(waiting_flags* flags, long long looks) {
  if (threadIdx.x == 0) {
    *static_cast<volatile unsigned int*>(&flags->begun[blockIdx.x]) = 1u;
    while (looks > 0 && *static_cast<volatile unsigned int*>(&flags->released) == 0u) --looks;
    if (looks == 0) *static_cast<volatile unsigned int*>(&flags->gave_up) = 1u;
  }
  __syncthreads();
}

/// Blocks that each fill a multiprocessor, at work on `stream` until release().
class waiting_kernel {
 public:
  waiting_kernel(cudaStream_t stream, int blocks) : stream_(stream) { begin(blocks); }
  waiting_kernel(const waiting_kernel&) = delete;
  waiting_kernel& operator=(const waiting_kernel&) = delete;
  ~waiting_kernel() {
    release();
    cudaFreeHost(flags_);
  }

  /// True if none of the blocks has ended.
  [[nodiscard]] bool waits() const { return seen(flags_->gave_up) == 0u && seen(flags_->released) == 0u; }

  void release() {
    *static_cast<volatile unsigned int*>(&flags_->released) = 1u;
    cudaStreamSynchronize(stream_);
  }

 private:
  void begin(int blocks) {
    REQUIRE(blocks <= waiting_flags::most_blocks);
    REQUIRE(cudaHostAlloc(&flags_, sizeof *flags_, cudaHostAllocMapped) == cudaSuccess);
    *flags_ = {};
    int device = 0, most = 0;
    REQUIRE(cudaGetDevice(&device) == cudaSuccess);
    REQUIRE(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess);
    REQUIRE(cudaFuncSetAttribute(wait_for_release, cudaFuncAttributeMaxDynamicSharedMemorySize, most) ==
            cudaSuccess);
    constexpr long long looks = 6'000'000;  // over the link: some seconds
    wait_for_release<<<blocks, 64, static_cast<std::size_t>(most), stream_>>>(flags_, looks);
    REQUIRE(cudaGetLastError() == cudaSuccess);
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (begun() < blocks && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    const bool complete = begun() == blocks;
    if (!complete) release();
    REQUIRE(complete);
  }
  [[nodiscard]] int begun() const {
    int blocks = 0;
    for (const unsigned int& block : flags_->begun) blocks += seen(block) != 0u;
    return blocks;
  }
  static unsigned int seen(const unsigned int& flag) {
    return *static_cast<const volatile unsigned int*>(&flag);
  }

  cudaStream_t stream_;
  waiting_flags* flags_ = nullptr;
};

}  // namespace ferry_test
