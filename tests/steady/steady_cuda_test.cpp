// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"
#include "support/training_step.hpp"

#include <cuda_runtime.h>

#include <mutex>

/// Calls of the CUDA runtime that allocate or wait, counted at the linker (--wrap, see CMakeLists.txt): ferry's,
/// Kokkos' and CUB's alike.
namespace ferry_test::steady_cuda_test {

std::atomic<bool> counting{false};
std::mutex guard;
std::map<std::string, int> calls;

void count(const char* name) {
  if (!counting) return;
  const std::lock_guard lock(guard);
  ++calls[name];
}

using counts = std::map<std::string, int>;

/// Makes the device late.
void delay(const exec_space& exec) {
  const auto status = cudaLaunchHostFunc(
      exec.cuda_stream(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); },
      nullptr);
  REQUIRE(status == cudaSuccess);
}

/// Of 50 turns after `warm` turns.
template <class Loop>
counts counts_of(const Loop& loop, int warm = 5) {
  for (int i = 0; i < warm; ++i) loop();
  calls.clear();
  counting = true;
  for (int i = 0; i < 50; ++i) loop();
  counting = false;
  return calls;
}

void count_call(const char* name) { count(name); }

TEMPLATE_TEST_CASE("50 steady steps call nothing that allocates or waits", "[steady]", ferry::device_space,
                   ferry::mapped_space) {
  const exec_space exec;
  training_step<TestType> step(exec);
  CHECK(counts_of([&] { step.run([](ferry::ticket ticket) { ticket.detach(); }); }) == counts{});
  CHECK(counts_of([&] { step.run([&](ferry::ticket ticket) { ticket.then(exec).detach(); }); }) == counts{});
  exec.fence("ferry_test::steady");
  delay(exec);
  CHECK(counts_of([&] { step.run([](ferry::ticket ticket) { ticket.detach(); }); }, 0) == counts{});
  exec.fence("ferry_test::steady");
}

TEST_CASE("two instances that take turns call nothing that allocates or waits", "[steady]") {
  const auto exec = Kokkos::Experimental::partition_space(exec_space{}, 1, 1);
  training_step<ferry::device_space> step(exec[0]);
  int turn = 0;
  const auto loop = [&] {
    step.run([&](ferry::ticket ticket) {
      ticket.detach();
      step.exec = exec[static_cast<std::size_t>(++turn % 2)];
    });
  };
  // Blocks that one instance leaves behind are the other's when their work has ended, or when there are many: the
  // most that can be are made while the device lags.
  for (const auto& instance : exec) delay(instance);
  for (int i = 0; i < 50; ++i) loop();
  CHECK(counts_of(loop) == counts{});
  for (const auto& instance : exec) instance.fence("ferry_test::steady");
}

TEST_CASE("a step that is waited for waits for events alone", "[steady]") {
  training_step<ferry::device_space> step(exec_space{});
  auto counted = counts_of([&] { step.run([](ferry::ticket ticket) { ticket.wait(); }); });
  CHECK(counted["cudaEventSynchronize"] == 50 * 7);
  counted.erase("cudaEventSynchronize");
  CHECK(counted == counts{});
}

TEST_CASE("what is counted is called", "[steady]") {
  ferry::trim<ferry::device_space>();  // what earlier tests left
  calls.clear();
  counting = true;
  { ferry::tensor<float, ferry::device_space> tensor("tensor", 10); }
  ferry::trim<ferry::device_space>();  // returns the memory that waits for the next tensor
  exec_space{}.fence("ferry_test::steady");
  counting = false;
  CHECK(calls["cudaMalloc"] == 1);
  CHECK(calls["cudaFree"] == 1);
  CHECK(calls["cudaStreamSynchronize"] == 1);
}

}  // namespace ferry_test::steady_cuda_test

// The functions that replace the runtime's; CMakeLists.txt lists the same names.
#define FERRY_COUNT(name, parameters, arguments)     \
  extern "C" cudaError_t __real_##name parameters;   \
  extern "C" cudaError_t __wrap_##name parameters;   \
  extern "C" cudaError_t __wrap_##name parameters {  \
    ferry_test::steady_cuda_test::count_call(#name); \
    return __real_##name arguments;                  \
  }

FERRY_COUNT(cudaMalloc, (void** data, std::size_t bytes), (data, bytes))
FERRY_COUNT(cudaMallocAsync, (void** data, std::size_t bytes, cudaStream_t stream), (data, bytes, stream))
FERRY_COUNT(cudaMallocManaged, (void** data, std::size_t bytes, unsigned int flags), (data, bytes, flags))
FERRY_COUNT(cudaMallocHost, (void** data, std::size_t bytes), (data, bytes))
FERRY_COUNT(cudaHostAlloc, (void** data, std::size_t bytes, unsigned int flags), (data, bytes, flags))
FERRY_COUNT(cudaHostRegister, (void* data, std::size_t bytes, unsigned int flags), (data, bytes, flags))
FERRY_COUNT(cudaHostUnregister, (void* data), (data))
FERRY_COUNT(cudaFree, (void* data), (data))
FERRY_COUNT(cudaFreeAsync, (void* data, cudaStream_t stream), (data, stream))
FERRY_COUNT(cudaFreeHost, (void* data), (data))
FERRY_COUNT(cudaEventCreate, (cudaEvent_t * event), (event))
FERRY_COUNT(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags), (event, flags))
FERRY_COUNT(cudaEventDestroy, (cudaEvent_t event), (event))
FERRY_COUNT(cudaEventSynchronize, (cudaEvent_t event), (event))
FERRY_COUNT(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned int flags), (stream, flags))
FERRY_COUNT(cudaStreamSynchronize, (cudaStream_t stream), (stream))
FERRY_COUNT(cudaDeviceSynchronize, (), ())
FERRY_COUNT(cudaMemcpy, (void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind),
            (target, source, bytes, kind))
FERRY_COUNT(cudaMemcpyToSymbol,
            (const void* symbol, const void* source, std::size_t bytes, std::size_t offset,
             cudaMemcpyKind kind),
            (symbol, source, bytes, offset, kind))
FERRY_COUNT(cudaMemset, (void* data, int value, std::size_t bytes), (data, value, bytes))
