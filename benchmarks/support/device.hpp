// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report.hpp"

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <memory>

/// Properties of the device that Kokkos does not report. The build compiles one of device_host.cpp and device_cuda.cpp.
namespace ferry_bench {

using exec_space = Kokkos::DefaultExecutionSpace;

/// Milliseconds between two points of an instance's queue, by the device's own clock.
class stopwatch {
 public:
  explicit stopwatch(const exec_space& exec);
  ~stopwatch();
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;

  void start();
  /// Waits for everything enqueued since start().
  double stop();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Name, memory, driver and the like.
facts describe_device();

/// Bytes that device memory has left; on a host backend, that the machine has left.
std::size_t free_device_bytes();

/// Blocking, through none of ferry's code.
void copy_to_host(void* target, const void* source, std::size_t bytes);

}  // namespace ferry_bench
