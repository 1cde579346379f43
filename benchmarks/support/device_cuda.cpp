// SPDX-License-Identifier: Apache-2.0
#include "check_cuda.hpp"
#include "device.hpp"

#include <string>

namespace ferry_bench {

struct stopwatch::state {
  cudaStream_t stream;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;

  explicit state(cudaStream_t handle) : stream(handle) {
    check_cuda(cudaEventCreate(&begin), "cudaEventCreate");
    check_cuda(cudaEventCreate(&end), "cudaEventCreate");
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
  }
};

stopwatch::stopwatch(const exec_space& exec) : state_(std::make_unique<state>(exec.cuda_stream())) {}
stopwatch::~stopwatch() = default;

void stopwatch::start() { check_cuda(cudaEventRecord(state_->begin, state_->stream), "cudaEventRecord"); }

double stopwatch::stop() {
  check_cuda(cudaEventRecord(state_->end, state_->stream), "cudaEventRecord");
  check_cuda(cudaEventSynchronize(state_->end), "cudaEventSynchronize");
  float ms = 0;
  check_cuda(cudaEventElapsedTime(&ms, state_->begin, state_->end), "cudaEventElapsedTime");
  return static_cast<double>(ms);
}

namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

facts describe_device() {
  int device = 0, driver = 0, runtime = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  cudaDeviceProp about{};
  check_cuda(cudaGetDeviceProperties(&about, device), "cudaGetDeviceProperties");
  return {{"backend", exec_space::name()},
          {"name", std::string(about.name)},
          {"compute_capability", std::to_string(about.major) + "." + std::to_string(about.minor)},
          {"multiprocessors", std::int64_t{about.multiProcessorCount}},
          {"memory_gib", static_cast<double>(about.totalGlobalMem) / 0x1p30},
          {"l2_bytes", std::int64_t{about.l2CacheSize}},
          {"driver_cuda", version_text(driver)},
          {"runtime_cuda", version_text(runtime)}};
}

std::size_t free_device_bytes() {
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

void copy_to_host(void* target, const void* source, std::size_t bytes) {
  check_cuda(cudaMemcpy(target, source, bytes, cudaMemcpyDefault), "cudaMemcpy");
}

}  // namespace ferry_bench
