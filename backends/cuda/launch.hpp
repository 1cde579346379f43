// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture.hpp"
#include "detail/abilities.hpp"
#include "device.hpp"
#include "error.hpp"

#include <ferry/memory/detail/tools.hpp>

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::cuda {

/// Code for each architecture of this source has an instruction that waits for the kernel before. Sources of
/// one program may differ, so templates that depend on it take it as an argument.
inline constexpr bool kernels_wait = [] {
#if defined(__CUDA_ARCH_LIST__)
  for (const int architecture : {__CUDA_ARCH_LIST__})
    if (architecture < 900) return false;
  return true;
#else
  return false;
#endif
}();

/// Functor::block_rounds, see launch_each; 0 if it has none.
template <class Functor>
inline constexpr unsigned int block_rounds = 0;
template <class Functor>
  requires(Functor::block_rounds != 0)
inline constexpr unsigned int block_rounds<Functor> = Functor::block_rounds;

/// A thread for each i in [first, end), or for several that are a grid apart. The blocks are prepared while
/// the kernel before ends, in room that its own blocks leave, and wait until it has ended and its writes are
/// visible.
template <bool Waits, class Functor>
__global__ void __launch_bounds__(Functor::most_threads, Functor::blocks_at_once)
    run_each(const Functor functor, const std::int64_t first, const std::int64_t end) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  if constexpr (block_rounds<Functor> == 0) {
    const std::int64_t i =
        first + static_cast<std::int64_t>(blockIdx.x) * Functor::most_threads + threadIdx.x;
    if (i < end) functor(i);
  } else {
    std::int64_t limit = end;
    if constexpr (requires { functor.work_items(); })
      if (const std::int64_t items = functor.work_items(); items < limit) limit = items;
#pragma unroll 1
    for (unsigned int block = blockIdx.x;; block += gridDim.x) {
      const std::int64_t i = first + static_cast<std::int64_t>(block) * Functor::most_threads + threadIdx.x;
      if (i >= limit) return;
      functor(i);
    }
  }
}

/// How Kokkos passes functors to kernels. Functors of 512 bytes and more, with Kokkos' wrapper, go through a
/// device buffer that all kernels share. The host then waits for the last kernel that used the buffer, and a
/// graph can't repeat it.
struct launch_functions {
  /// Lets the second-level cache read a sector from the device's memory.
  KOKKOS_FORCEINLINE_FUNCTION static void prefetch([[maybe_unused]] const void* address) {
    KOKKOS_IF_ON_DEVICE((asm volatile("prefetch.global.L2 [%0];" ::"l"(address));))
  }

  /// The policy with the hint by which Kokkos passes functors of up to 4 KB as a kernel argument.
  template <class Policy>
  using by_argument = decltype(Kokkos::Experimental::require(
      std::declval<Policy>(), Kokkos::Experimental::WorkItemProperty::HintLightWeight));

  /// True if Kokkos does so with this functor. The size of the wrapped functor counts.
  template <class Functor, class Policy>
  static consteval bool launches_by_argument() {
    using wrapped = Kokkos::Impl::ParallelFor<Functor, Policy, Kokkos::Cuda>;
    return Kokkos::Impl::DeduceCudaLaunchMechanism<wrapped>::launch_mechanism ==
           Kokkos::Impl::Experimental::CudaLaunchMechanism::LocalMemory;
  }

  /// Enqueues functor(i) for each i in [0, count) in blocks of Functor::most_threads. Not by Kokkos, whose
  /// kernels loop over a range: the index that they keep takes registers from a functor that has few. Kokkos'
  /// tools see the kernel. While such a kernel ends, the device prepares the next one, which takes 1 to 2 us
  /// less (H200).
  ///
  /// With Functor::block_rounds there are at most as many blocks as the device holds at once, that many
  /// times, and each takes the work of several: a small block is not launched as fast as another one ends.
  /// Functor::work_items(), if there is that, says on the device how many of the `count` items there are.
  template <bool Waits = kernels_wait, class Functor>
  static void launch_each(const Kokkos::Cuda& exec, const std::string& label, std::int64_t count,
                          const Functor& functor) {
    static_assert(sizeof(Functor) <= 4000, "ferry: a functor must fit into the arguments of a kernel");
    constexpr std::int64_t threads = Functor::most_threads;
    constexpr std::int64_t most = std::int64_t{std::numeric_limits<std::int32_t>::max()} * threads;
    const device_guard guard(exec);
    const detail::tool_kernel reported(exec, label);
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t launch{};
    launch.blockDim = dim3(static_cast<unsigned int>(threads));
    launch.stream = exec.cuda_stream();
    launch.attrs = &attribute;
    launch.numAttrs = Waits && !capture_functions::capturing(exec) ? 1 : 0;
    for (std::int64_t first = 0; first < count; first += most) {
      std::int64_t blocks = (std::min(count - first, most) + threads - 1) / threads;
      if constexpr (block_rounds<Functor> != 0)
        blocks =
            std::min<std::int64_t>(blocks, std::int64_t{block_rounds<Functor>} * Functor::blocks_at_once *
                                               size_of(exec.cuda_device_prop()).multiprocessors);
      launch.gridDim = dim3(static_cast<unsigned int>(blocks));
      check(cudaLaunchKernelEx(&launch, run_each<Waits, Functor>, functor, first,
                               std::min(first + most, count)),
            "cudaLaunchKernelEx");
    }
  }
};

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

/// Launches of blocks without Kokkos.
struct block_functions {
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
