// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"
#include "machine.hpp"

#include <chrono>
#include <cstring>

namespace ferry_bench {

/// A host execution space's kernels have ended when its fence returns, so the host's clock is the device's.
struct stopwatch::state {
  exec_space exec;
  std::chrono::steady_clock::time_point begun;
};

stopwatch::stopwatch(const exec_space& exec) : state_(new state{exec, {}}) {}
stopwatch::~stopwatch() = default;

void stopwatch::start() {
  state_->exec.fence("ferry_bench::start");
  state_->begun = std::chrono::steady_clock::now();
}

double stopwatch::stop() {
  state_->exec.fence("ferry_bench::stop");
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - state_->begun).count();
}

facts describe_device() {
  return {{"backend", exec_space::name()}, {"threads", std::int64_t{exec_space().concurrency()}}};
}

std::size_t free_device_bytes() { return free_host_bytes(); }

void copy_to_host(void* target, const void* source, std::size_t bytes) { std::memcpy(target, source, bytes); }

}  // namespace ferry_bench
