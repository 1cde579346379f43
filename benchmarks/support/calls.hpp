// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Calls of the system that a work causes. The build compiles one of calls_host.cpp and calls_cuda.cpp.
namespace ferry_bench {

struct call_counts {
  std::int64_t allocations = 0;       ///< of memory, events and streams; giving them back counts as well
  std::int64_t synchronisations = 0;  ///< the calling thread waited for the execution space
};

/// Counts calls of the whole process from here to stop(), from whatever library they come. One at a time.
///
/// On CUDA these are calls of its runtime, ferry's, Kokkos' and CUB's alike. On a host backend they are what Kokkos Tools
/// are told: allocations of Kokkos and of ferry, and fences.
class call_counter {
 public:
  call_counter();
  ~call_counter();
  call_counter(const call_counter&) = delete;
  call_counter& operator=(const call_counter&) = delete;

  call_counts stop();
};

}  // namespace ferry_bench
