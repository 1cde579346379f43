// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device.hpp"
#include "error.hpp"

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ferry::cuda {

/// A block of threads, with the interface of a Kokkos team.
class block_team {
 public:
  [[nodiscard]] KOKKOS_FUNCTION int league_rank() const {
    KOKKOS_IF_ON_DEVICE((return static_cast<int>(blockIdx.x);))
    KOKKOS_IF_ON_HOST((return 0;))
  }
  [[nodiscard]] KOKKOS_FUNCTION int team_rank() const {
    KOKKOS_IF_ON_DEVICE((return static_cast<int>(threadIdx.x);))
    KOKKOS_IF_ON_HOST((return 0;))
  }
  [[nodiscard]] KOKKOS_FUNCTION int team_size() const {
    KOKKOS_IF_ON_DEVICE((return static_cast<int>(blockDim.x);))
    KOKKOS_IF_ON_HOST((return 1;))
  }
  /// Threads of a warp. They call the functions below together.
  static constexpr int lanes = 32;
  /// Bit l is set where lane l passes true.
  [[nodiscard]] KOKKOS_FUNCTION std::uint32_t vote([[maybe_unused]] bool bit) const {
    KOKKOS_IF_ON_DEVICE((return __ballot_sync(0xffffffffu, bit);))
    KOKKOS_IF_ON_HOST((return bit ? 1u : 0u;))
  }
  /// Returns when all lanes have called it, with their writes before it visible to all of them.
  KOKKOS_FUNCTION void warp_barrier() const { KOKKOS_IF_ON_DEVICE((__syncwarp();)) }
  KOKKOS_FUNCTION void team_barrier() const { KOKKOS_IF_ON_DEVICE((__syncthreads();)) }
  /// Broadcasts the value of thread `rank` to all threads.
  template <class T>
  KOKKOS_FUNCTION void team_broadcast([[maybe_unused]] T& value, [[maybe_unused]] int rank) const {
    KOKKOS_IF_ON_DEVICE((__shared__ T shared_value; __syncthreads();
                         if (team_rank() == rank) shared_value = value; __syncthreads();
                         value = shared_value;))
  }
  /// The block's own T in shared memory, uninitialized: one for each type, of at most 48 KiB in all.
  template <class T>
  [[nodiscard]] KOKKOS_FUNCTION T& shared() const {
    KOKKOS_IF_ON_DEVICE((__shared__ T memory; return memory;))
    KOKKOS_IF_ON_HOST(
        (Kokkos::abort("ferry: shared memory is a device's"); return *static_cast<T*>(nullptr);))
  }
  /// A T at the begin of the block's shared memory of the size that launch_blocks was given, uninitialized.
  /// A kernel that calls it has neither shared() nor team_broadcast().
  template <class T>
  [[nodiscard]] KOKKOS_FUNCTION T& dynamic_shared() const {
    static_assert(alignof(T) <= alignof(int4));
    KOKKOS_IF_ON_DEVICE(
        (extern __shared__ int4 dynamic_memory[]; return *reinterpret_cast<T*>(dynamic_memory);))
    KOKKOS_IF_ON_HOST(
        (Kokkos::abort("ferry: shared memory is a device's"); return *static_cast<T*>(nullptr);))
  }
};

inline constexpr int largest_block = 512;

template <class Functor>
__global__ void __launch_bounds__(largest_block) run_blocks(const Functor functor) {
  functor(block_team{});
}

/// Launches of blocks without Kokkos, for kernels that share page-locked memory with the running host.
struct link_functions {
  /// Lets the second-level cache read a sector from the device's memory.
  KOKKOS_FORCEINLINE_FUNCTION static void prefetch([[maybe_unused]] const void* address) {
    KOKKOS_IF_ON_DEVICE((asm volatile("prefetch.global.L2 [%0];" ::"l"(address));))
  }

  /// Enqueues functor(team) for each of `teams` teams of `size` threads, at most largest_block, which have
  /// `shared_bytes` of dynamic_shared memory, at most 48 KiB. Not by Kokkos: with a tool loaded, Kokkos
  /// fences before and after each kernel, and the host must not wait for a kernel that waits for the host;
  /// and Kokkos allocates before it launches teams.
  template <class Functor>
  static void launch_blocks(const Kokkos::Cuda& exec, std::string_view, int teams, int size,
                            const Functor& functor, std::size_t shared_bytes = 0) {
    const device_guard guard(exec);
    const dim3 blocks(static_cast<unsigned>(teams));
    const dim3 threads(static_cast<unsigned>(std::min(size, largest_block)));
    void* arguments[] = {const_cast<Functor*>(&functor)};
    check(cudaLaunchKernel(reinterpret_cast<const void*>(&run_blocks<Functor>), blocks, threads, arguments,
                           shared_bytes, exec.cuda_stream()),
          "cudaLaunchKernel");
  }
};

}  // namespace ferry::cuda
