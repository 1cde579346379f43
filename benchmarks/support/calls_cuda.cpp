// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>

/// The linker puts the functions below in the place of the runtime's (--wrap, see CMakeLists.txt, which lists the same
/// names), so that every library's calls are seen.
namespace ferry_bench {

namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> allocations{0};
std::atomic<std::int64_t> synchronisations{0};

void count(std::atomic<std::int64_t>& counter) {
  if (counting.load(std::memory_order_relaxed)) counter.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void count_allocation() { count(allocations); }
void count_synchronisation() { count(synchronisations); }

call_counter::call_counter() {
  allocations = synchronisations = 0;
  counting = true;
}

call_counter::~call_counter() { counting = false; }

call_counts call_counter::stop() {
  counting = false;
  return {allocations, synchronisations};
}

}  // namespace ferry_bench

#define FERRY_BENCH_COUNT(what, name, parameters, arguments) \
  extern "C" cudaError_t __real_##name parameters;           \
  extern "C" cudaError_t __wrap_##name parameters;           \
  extern "C" cudaError_t __wrap_##name parameters {          \
    ferry_bench::count_##what();                             \
    return __real_##name arguments;                          \
  }

FERRY_BENCH_COUNT(allocation, cudaMalloc, (void** data, std::size_t bytes), (data, bytes))
FERRY_BENCH_COUNT(allocation, cudaMallocAsync, (void** data, std::size_t bytes, cudaStream_t stream),
                  (data, bytes, stream))
FERRY_BENCH_COUNT(allocation, cudaMallocManaged, (void** data, std::size_t bytes, unsigned int flags),
                  (data, bytes, flags))
FERRY_BENCH_COUNT(allocation, cudaMallocHost, (void** data, std::size_t bytes), (data, bytes))
FERRY_BENCH_COUNT(allocation, cudaHostAlloc, (void** data, std::size_t bytes, unsigned int flags),
                  (data, bytes, flags))
FERRY_BENCH_COUNT(allocation, cudaHostRegister, (void* data, std::size_t bytes, unsigned int flags),
                  (data, bytes, flags))
FERRY_BENCH_COUNT(allocation, cudaHostUnregister, (void* data), (data))
FERRY_BENCH_COUNT(allocation, cudaFree, (void* data), (data))
FERRY_BENCH_COUNT(allocation, cudaFreeAsync, (void* data, cudaStream_t stream), (data, stream))
FERRY_BENCH_COUNT(allocation, cudaFreeHost, (void* data), (data))
FERRY_BENCH_COUNT(allocation, cudaEventCreate, (cudaEvent_t * event), (event))
FERRY_BENCH_COUNT(allocation, cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags),
                  (event, flags))
FERRY_BENCH_COUNT(allocation, cudaEventDestroy, (cudaEvent_t event), (event))
FERRY_BENCH_COUNT(allocation, cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned int flags),
                  (stream, flags))
FERRY_BENCH_COUNT(synchronisation, cudaEventSynchronize, (cudaEvent_t event), (event))
FERRY_BENCH_COUNT(synchronisation, cudaStreamSynchronize, (cudaStream_t stream), (stream))
FERRY_BENCH_COUNT(synchronisation, cudaDeviceSynchronize, (), ())
FERRY_BENCH_COUNT(synchronisation, cudaMemcpy,
                  (void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind),
                  (target, source, bytes, kind))
FERRY_BENCH_COUNT(synchronisation, cudaMemcpyToSymbol,
                  (const void* symbol, const void* source, std::size_t bytes, std::size_t offset,
                   cudaMemcpyKind kind),
                  (symbol, source, bytes, offset, kind))
FERRY_BENCH_COUNT(synchronisation, cudaMemset, (void* data, int value, std::size_t bytes),
                  (data, value, bytes))
