// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace ferry::cuda {

/// Sizes of a sort of few keys in one ordinary launch: the place of a key is the number of smaller keys. The
/// work grows with the square of the number of keys and is spread over all multiprocessors, where the passes
/// of a radix sort follow one another.
struct counting_sort {
  static constexpr int threads = 512;
  static constexpr int warps = threads / 32;
  static constexpr int keys_of_block = 32;                 ///< keys that a block places
  static constexpr int sharing = threads / keys_of_block;  ///< threads that compare for one key
  static constexpr std::int64_t most_keys = 2048;          ///< 16 KiB of shared memory

  static std::int64_t blocks_for(std::int64_t count) { return (count + keys_of_block - 1) / keys_of_block; }
};

/// Makes keys, sorts them, and places segments of the sorted keys, see sort_functions::sort_and_place. All
/// keys differ, because each contains its position.
///
/// Device mapping: every block makes all keys, in shared memory. `sharing` neighbouring threads compare one
/// of the block's own keys with all others, each with another part, and write it to its place in `sorted`.
/// The block that arrives last has all sorted keys and places the segments, a warp for neighbouring places.
/// No block waits for another one.
template <class Keys, class Segments>
struct sort_by_counting {
  static constexpr unsigned int all_lanes = 0xffffffffu;

  Keys key_of;
  Segments segments;
  std::uint64_t* sorted;
  unsigned int* arrived;  ///< blocks; 0 before and after
  std::uint32_t count;

  struct shared {
    alignas(16) std::uint64_t keys[counting_sort::most_keys];
    std::uint64_t begun[counting_sort::warps];  ///< what begins in the places of a warp
    bool is_last;
  };

  __device__ void run(shared& block) const {
    make_keys(block);
    __syncthreads();
    place_own(block);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      block.is_last = atomicAdd(arrived, 1u) + 1 == gridDim.x;
      if (block.is_last) *arrived = 0;
    }
    __syncthreads();
    if (!block.is_last) return;
    __threadfence();
    for (std::uint32_t k = threadIdx.x; k < count; k += counting_sort::threads)
      block.keys[k] = __ldcg(sorted + k);
    __syncthreads();
    place_segments(block);
  }

 private:
  /// Numbers of segments (lower half) and of runs (upper half).
  __device__ static std::uint64_t pair(int of_segments, int of_runs) {
    return static_cast<std::uint64_t>(of_segments) | static_cast<std::uint64_t>(of_runs) << 32;
  }

  /// An even number of keys, for loads of two.
  __device__ void make_keys(shared& block) const {
    for (std::uint32_t p = threadIdx.x; p < count; p += counting_sort::threads)
      block.keys[p] = key_of(p, p / counting_sort::keys_of_block == blockIdx.x);
    if (threadIdx.x == 0 && count % 2 != 0) block.keys[count] = ~std::uint64_t{0};
  }

  __device__ void place_own(const shared& block) const {
    const std::uint32_t rank =
        blockIdx.x * counting_sort::keys_of_block + threadIdx.x / counting_sort::sharing;
    const std::uint64_t key = rank < count ? block.keys[rank] : 0;
    const auto* pairs = reinterpret_cast<const ulonglong2*>(block.keys);
    int smaller = 0;
#pragma unroll 4
    for (std::uint32_t p = threadIdx.x % counting_sort::sharing; p < (count + 1) / 2;
         p += counting_sort::sharing) {
      const ulonglong2 two = pairs[p];
      smaller += (two.x < key ? 1 : 0) + (two.y < key ? 1 : 0);
    }
    for (int step = 1; step < counting_sort::sharing; step *= 2)
      smaller += __shfl_xor_sync(all_lanes, smaller, step);
    if (rank < count && threadIdx.x % counting_sort::sharing == 0) __stcg(sorted + smaller, key);
  }

  __device__ void place_segments(shared& block) const {
    Segments of_sorted = segments;
    of_sorted.sorted.keys = block.keys;
    const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned int up_to_here = all_lanes >> (31 - lane);
    const std::uint32_t of_warp =
        (count + counting_sort::threads - 1) / counting_sort::threads * 32;  // places
    const std::uint32_t first = warp * of_warp;
    const auto for_each_place = [&](const auto& act) {
      std::uint64_t begun = 0;
      for (std::uint32_t k = first + lane; k < first + of_warp; k += 32) {
        const std::uint64_t adds = k < count ? of_sorted.sorted(k) : 0;
        const unsigned int begins = __ballot_sync(all_lanes, (adds & 1u) != 0);
        const unsigned int runs = __ballot_sync(all_lanes, adds >> 32 != 0);
        act(k, begun + pair(__popc(begins & up_to_here), __popc(runs & up_to_here)));
        begun += pair(__popc(begins), __popc(runs));
      }
      return begun;
    };
    const std::uint64_t begun = for_each_place([](std::uint32_t, std::uint64_t) {});
    if (lane == 0) block.begun[warp] = begun;
    __syncthreads();
    std::uint64_t before = 0;
    for (std::uint32_t w = 0; w < warp; ++w) before += block.begun[w];
    for_each_place([&](std::uint32_t k, std::uint64_t upto) {
      if (k < count) of_sorted.write(k, before + upto);
    });
  }
};

template <class Keys, class Segments>
__global__ void __launch_bounds__(counting_sort::threads)
    sort_keys_by_counting(sort_by_counting<Keys, Segments> sort) {
  __shared__ typename sort_by_counting<Keys, Segments>::shared block;
  sort.run(block);
}

template <class Keys, class Segments>
cudaError_t launch_counting_sort(cudaStream_t stream, sort_by_counting<Keys, Segments> sort) {
  void* arguments[] = {&sort};
  const auto kernel = sort_keys_by_counting<Keys, Segments>;
  const dim3 blocks(static_cast<unsigned int>(counting_sort::blocks_for(sort.count)));
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), blocks, dim3(counting_sort::threads),
                          arguments, 0, stream);
}

}  // namespace ferry::cuda
