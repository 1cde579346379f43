// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "grid_sort.hpp"

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace ferry::cuda {

/// Makes keys, sorts them by the bits [first_bit, first_bit + passes * width), least significant digit first
/// (Knuth, The Art of Computer Programming 3, 5.2.5), and places segments of the sorted keys, see
/// sort_functions::sort_and_place. The first pass makes the keys. The passes alternate between two buffers,
/// so that the last one writes to `buffer`.
///
/// Device mapping: a block has one tile of adjacent keys, a warp 32 * Items of them. In each pass, every warp
/// ranks its keys among its own keys of the same digit, and every block publishes its count of each digit
/// (counts[digit][block]). After a barrier of all blocks, each block sums the counts before its own keys and
/// writes the keys to their places. After another barrier the next pass reads them. At the end every block
/// counts what begins in its tile of the sorted keys and publishes that, and after a last barrier each place
/// knows its running sum.
template <int Items, class Keys, class Segments>
struct sort_by_grid {
  static constexpr int threads = grid_sort::threads;
  static constexpr int warps = grid_sort::warps;
  static constexpr unsigned int all_lanes = 0xffffffffu;

  Keys key_of;
  Segments segments;
  std::uint64_t* buffer;
  std::uint64_t* other_buffer;
  std::uint16_t* counts;
  std::uint32_t stride;  ///< of `counts`
  std::uint32_t count;
  int first_bit;
  int passes;
  int width;

  struct shared {
    std::uint16_t
        key_counts[warps]
                  [grid_sort::bins];  ///< keys of a digit: of the warp so far, then of the warps before it
    std::uint32_t first[grid_sort::bins];  ///< place of the block's first key of a digit
    std::uint32_t lower[warps];            ///< keys of the digits of a warp
    std::uint64_t begun[warps];            ///< what begins in the places of a warp
  };
  struct tile {
    std::uint64_t key[Items];
    std::uint16_t rank[Items];
  };

  __device__ void run(shared& block) const {
    std::uint64_t* target = passes % 2 != 0 ? buffer : other_buffer;
    std::uint64_t* source = passes % 2 != 0 ? other_buffer : buffer;
    for (int pass = 0; pass < passes; ++pass) {
      tile keys;
      load(keys, source, pass);
      rank(block, keys, pass);
      publish_digits(block);
      meet();
      find_places(block);
      store(block, keys, target, pass);
      meet();
      std::uint64_t* const sorted = target;
      target = source;
      source = sorted;
    }
    place_segments(block);
  }

 private:
  /// Waits for all blocks. Writes before it are visible after it.
  __device__ static void meet() { cooperative_groups::this_grid().sync(); }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static std::uint32_t place(int item) {
    return (blockIdx.x * threads + static_cast<std::uint32_t>(warp()) * 32u) * Items +
           static_cast<std::uint32_t>(item * 32 + lane());
  }
  [[nodiscard]] __device__ int digits() const { return 1 << width; }
  [[nodiscard]] __device__ unsigned int digit(std::uint64_t key, int pass) const {
    return static_cast<unsigned int>(key >> (first_bit + pass * width)) &
           (static_cast<unsigned int>(digits()) - 1u);
  }

  // Other blocks wrote keys and counts, so loads bypass the first-level cache, which may hold older values.
  __device__ void load(tile& keys, const std::uint64_t* source, int pass) const {
    for (int i = 0; i < Items; ++i) {
      const std::uint32_t position = place(i);
      if (position >= count)
        keys.key[i] = 0;
      else if (pass == 0)
        keys.key[i] = key_of(position, true);
      else
        keys.key[i] = __ldcg(source + position);
    }
  }

  __device__ void rank(shared& block, tile& keys, int pass) const {
    auto* words = reinterpret_cast<std::uint32_t*>(block.key_counts);
    for (int i = static_cast<int>(threadIdx.x); i < warps * grid_sort::bins / 2; i += threads) words[i] = 0;
    __syncthreads();
    const unsigned int lower_lanes = (1u << lane()) - 1u;
    for (int i = 0; i < Items; ++i) {
      const bool live = place(i) < count;
      const unsigned int bin = digit(keys.key[i], pass);
      unsigned int peers = __ballot_sync(all_lanes, live);
      for (int b = 0; b < width; ++b) {
        const bool set = (bin >> b & 1u) != 0;
        const unsigned int votes = __ballot_sync(all_lanes, set);
        peers &= set ? votes : ~votes;
      }
      const std::uint32_t before = live ? block.key_counts[warp()][bin] : 0;
      keys.rank[i] = static_cast<std::uint16_t>(before + __popc(peers & lower_lanes));
      __syncwarp();
      if (live && (peers & lower_lanes) == 0)
        block.key_counts[warp()][bin] = static_cast<std::uint16_t>(before + __popc(peers));
      __syncwarp();
    }
    __syncthreads();
  }

  /// Publishes the block's count of each digit, one thread per digit. The last block also zeroes the counts
  /// up to `stride`, because find_places() loads eight at a time.
  __device__ void publish_digits(shared& block) const {
    const int bin = static_cast<int>(threadIdx.x);
    if (bin >= digits()) return;
    std::uint32_t sum = 0;
    for (int w = 0; w < warps; ++w) {
      const std::uint16_t of_warp = block.key_counts[w][bin];
      block.key_counts[w][bin] = static_cast<std::uint16_t>(sum);
      sum += of_warp;
    }
    std::uint16_t* const row = counts + static_cast<std::uint32_t>(bin) * stride;
    __stcg(row + blockIdx.x, static_cast<std::uint16_t>(sum));
    if (blockIdx.x + 1 == gridDim.x)
      for (std::uint32_t b = gridDim.x; b < stride; ++b) __stcg(row + b, std::uint16_t{0});
  }

  /// Finds the place of the first key of each digit, with up to a warp of threads per digit.
  __device__ void find_places(shared& block) const {
    const int sharing = threads / digits() < 32 ? threads / digits() : 32;
    const int bin = static_cast<int>(threadIdx.x) / sharing;
    std::uint32_t of_all = 0, of_blocks_before = 0;
    if (bin < digits()) {
      const auto* row = reinterpret_cast<const uint4*>(counts + static_cast<std::uint32_t>(bin) * stride);
      for (std::uint32_t v = threadIdx.x % static_cast<std::uint32_t>(sharing);
           v * grid_sort::counts_at_once < gridDim.x; v += static_cast<std::uint32_t>(sharing)) {
        const uint4 eight = __ldcg(row + v);
        const std::uint32_t pairs[] = {eight.x, eight.y, eight.z, eight.w};
        for (std::uint32_t k = 0; k < grid_sort::counts_at_once; ++k) {
          const std::uint32_t chunk = v * grid_sort::counts_at_once + k;
          const std::uint32_t keys = pairs[k / 2] >> k % 2 * 16 & 0xffffu;
          of_all += keys;
          if (chunk < blockIdx.x) of_blocks_before += keys;
        }
      }
    }
    for (int step = 1; step < sharing; step *= 2) {
      of_all += __shfl_xor_sync(all_lanes, of_all, step);
      of_blocks_before += __shfl_xor_sync(all_lanes, of_blocks_before, step);
    }
    place_digits(block, bin, bin < digits() && static_cast<int>(threadIdx.x) % sharing == 0, of_all,
                 of_blocks_before);
  }

  /// The place of the block's first key of each digit: after all keys of lower digits, and those of its digit
  /// in the blocks before. A scan over the digits; one thread `has_digit` for each.
  __device__ void place_digits(shared& block, int bin, bool has_digit, std::uint32_t of_all,
                               std::uint32_t of_blocks_before) const {
    std::uint32_t upto = has_digit ? of_all : 0;
    for (int step = 1; step < 32; step *= 2) {
      const std::uint32_t neighbour = __shfl_up_sync(all_lanes, upto, step);
      if (lane() >= step) upto += neighbour;
    }
    if (lane() == 31) block.lower[warp()] = upto;
    __syncthreads();
    for (int w = 0; w < warp(); ++w) upto += block.lower[w];
    if (has_digit) block.first[bin] = upto - of_all + of_blocks_before;
    __syncthreads();
  }

  __device__ void store(shared& block, const tile& keys, std::uint64_t* target, int pass) const {
    for (int i = 0; i < Items; ++i) {
      const unsigned int bin = digit(keys.key[i], pass);
      if (place(i) >= count) continue;
      const std::uint32_t position = block.first[bin] + block.key_counts[warp()][bin] + keys.rank[i];
      __stcg(target + position, keys.key[i]);
    }
  }

  /// Numbers of segments (lower half) and of runs (upper half).
  __device__ static std::uint64_t pair(std::uint32_t of_segments, std::uint32_t of_runs) {
    return std::uint64_t{of_segments} | std::uint64_t{of_runs} << 32;
  }

  /// Gives each place of the sorted keys the running sum of what the places add. All blocks have met since
  /// the keys were written.
  __device__ void place_segments(shared& block) const {
    Segments of_sorted = segments;
    of_sorted.sorted.keys = buffer;
    const unsigned int up_to_here = all_lanes >> (31 - lane());
    std::uint64_t upto[Items];
    std::uint64_t of_warp = 0;
    for (int i = 0; i < Items; ++i) {
      const std::uint64_t adds = place(i) < count ? of_sorted.sorted(place(i)) : 0;
      const unsigned int begins = __ballot_sync(all_lanes, (adds & 1u) != 0);
      const unsigned int runs = __ballot_sync(all_lanes, adds >> 32 != 0);
      upto[i] = of_warp + pair(__popc(begins & up_to_here), __popc(runs & up_to_here));
      of_warp += pair(__popc(begins), __popc(runs));
    }
    if (lane() == 0) block.begun[warp()] = of_warp;
    __syncthreads();
    std::uint64_t before = 0;
    for (int w = 0; w < warp(); ++w) before += block.begun[w];
    before += begun_in_blocks_before(block);
    for (int i = 0; i < Items; ++i)
      if (place(i) < count) of_sorted.write(place(i), before + upto[i]);
  }

  /// Publishes what begins in this block, and sums that of the blocks before. Their sums take the place of
  /// the counts of digits, which nobody reads any more.
  __device__ std::uint64_t begun_in_blocks_before(shared& block) const {
    auto* const sums = reinterpret_cast<unsigned long long*>(counts);
    if (threadIdx.x == 0) {
      std::uint64_t of_block = 0;
      for (int w = 0; w < warps; ++w) of_block += block.begun[w];
      __stcg(sums + blockIdx.x, of_block);
    }
    meet();
    std::uint64_t sum = 0;
    for (std::uint32_t b = threadIdx.x; b < blockIdx.x; b += threads) sum += __ldcg(sums + b);
    for (int step = 1; step < 32; step *= 2)
      sum += __shfl_xor_sync(all_lanes, static_cast<unsigned long long>(sum), step);
    if (lane() == 0) block.begun[warp()] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < warps; ++w) sum += block.begun[w];
    return sum;
  }
};

template <int Items, class Keys, class Segments>
__global__ void __launch_bounds__(grid_sort::threads, grid_sort::blocks_in_one)
    sort_keys_by_grid(sort_by_grid<Items, Keys, Segments> sort) {
  __shared__ typename sort_by_grid<Items, Keys, Segments>::shared block;
  sort.run(block);
}

/// Launches the sort on `stream` by this number of blocks. Returns an error, for example
/// cudaErrorCooperativeLaunchTooLarge, if the device can't run all of them at once.
template <int Items, class Keys, class Segments>
cudaError_t launch_grid_sort(cudaStream_t stream, std::int64_t blocks,
                             sort_by_grid<Items, Keys, Segments> sort) {
  void* arguments[] = {&sort};
  const auto kernel = reinterpret_cast<const void*>(sort_keys_by_grid<Items, Keys, Segments>);
  const dim3 all_blocks(static_cast<unsigned int>(blocks));
  return cudaLaunchCooperativeKernel(kernel, all_blocks, dim3(grid_sort::threads), arguments, 0, stream);
}

}  // namespace ferry::cuda
