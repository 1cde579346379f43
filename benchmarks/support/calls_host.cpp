// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include <Kokkos_Core.hpp>

#include <atomic>

namespace ferry_bench {

namespace {

namespace tools = Kokkos::Tools::Experimental;

std::atomic<std::int64_t> allocations{0};
std::atomic<std::int64_t> synchronisations{0};
tools::EventSet of_others;  ///< a tool that the user has loaded

void moved(Kokkos_Profiling_SpaceHandle, const char*, const void*, std::uint64_t) { ++allocations; }
void fenced(const char*, std::uint32_t, std::uint64_t*) { ++synchronisations; }

}  // namespace

call_counter::call_counter() {
  of_others = tools::get_callbacks();
  allocations = synchronisations = 0;
  tools::set_allocate_data_callback(moved);
  tools::set_deallocate_data_callback(moved);
  tools::set_begin_fence_callback(fenced);
}

call_counter::~call_counter() { tools::set_callbacks(of_others); }

call_counts call_counter::stop() {
  const call_counts counts{allocations, synchronisations};
  tools::set_callbacks(of_others);
  return counts;
}

}  // namespace ferry_bench
