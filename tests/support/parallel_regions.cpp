// SPDX-License-Identifier: Apache-2.0
#include "support/parallel_regions.hpp"

#include <Kokkos_Macros.hpp>

#include <atomic>

#if defined(KOKKOS_ENABLE_OPENMP) && !defined(KOKKOS_ENABLE_CUDA) && defined(__GNUC__) && !defined(__clang__)
#define FERRY_TEST_COUNTS_REGIONS
#include <dlfcn.h>
#endif

namespace {

std::atomic<int> regions{0};

}  // namespace

#if defined(FERRY_TEST_COUNTS_REGIONS)
// GCC calls this function of its library for each parallel region; the program's own comes first.
extern "C" void GOMP_parallel(void (*part)(void*), void* data, unsigned threads, unsigned flags) {
  using region = void (*)(void (*)(void*), void*, unsigned, unsigned);
  static const auto library_region = reinterpret_cast<region>(::dlsym(RTLD_NEXT, "GOMP_parallel"));
  ++regions;
  library_region(part, data, threads, flags);
}
#endif

namespace ferry_test {

bool counts_parallel_regions() {
#if defined(FERRY_TEST_COUNTS_REGIONS)
  return true;
#else
  return false;
#endif
}

int parallel_regions() { return regions; }

}  // namespace ferry_test
