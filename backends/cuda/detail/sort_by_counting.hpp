// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace ferry::cuda {

/// Sizes of a sort of few keys in one ordinary launch: the place of a key is the number of smaller keys. The
/// work grows with the square of the number of keys and is spread over all multiprocessors, where the passes
/// of a radix sort follow one another.
struct counting_sort {
  static constexpr int threads = 1024;
  static constexpr std::int64_t most_keys = 2048;
  static constexpr int most_slots = 2 * static_cast<int>(most_keys);  ///< of a hash table of rows
  static constexpr int most_keys_of_block = 16;

  /// Keys that a block places: a block for each multiprocessor of a large device.
  static int keys_of_block(std::int64_t count) { return count <= most_keys / 2 ? 8 : most_keys_of_block; }
  static std::int64_t blocks_for(std::int64_t count) {
    return (count + keys_of_block(count) - 1) / keys_of_block(count);
  }
};

/// Makes keys, sorts them, and places segments of the sorted keys, see sort_functions::sort_and_place. All
/// keys differ, because each contains its position.
///
/// Device mapping: every block makes all keys, in shared memory, and a hash table with the first position of
/// each row, so it knows which keys begin a segment or a run. Some warps then compare one of the block's own
/// keys with all others: the number of keys up to it is its place, and the segments and runs that these begin
/// are the sum of the terms up to it. No block waits for another one.
template <class Keys, class Segments>
struct sort_by_counting {
  static constexpr unsigned int all_lanes = 0xffffffffu;
  static constexpr int none = -1;

  Keys key_of;
  Segments segments;
  std::uint32_t count;
  int keys_of_block;
  std::uint32_t slots;  ///< a power of two, twice the keys at least

  struct shared {
    std::uint64_t keys[counting_sort::most_keys];
    std::uint16_t begins[counting_sort::most_keys];          ///< 1 for a segment, and 256 for a run
    int first[counting_sort::most_slots];                    ///< position of a row, or none
    std::uint32_t positions[counting_sort::most_slots / 2];  ///< of the rows of two slots; the first block's
    unsigned long long before[counting_sort::most_keys_of_block];  ///< see compare()
    bool is_last[counting_sort::most_keys_of_block];               ///< of the keys with a row
  };

  __device__ void run(shared& block) const {
    clear(block);
    for (std::uint32_t p = threadIdx.x; p < count; p += counting_sort::threads)
      block.keys[p] = key_of(p, false);
    __syncthreads();
    record();
    for (std::uint32_t p = threadIdx.x; p < count; p += counting_sort::threads) enter(block, p);
    __syncthreads();
    for (std::uint32_t p = threadIdx.x; p < count; p += counting_sort::threads) mark(block, p);
    __syncthreads();
    compare(block);
    __syncthreads();
    place(block);
  }

 private:
  [[nodiscard]] __device__ std::uint64_t row(std::uint64_t key) const {
    return key >> segments.places.position_bits;
  }
  __device__ std::uint32_t slot_of(std::uint64_t row) const {
    return static_cast<std::uint32_t>((row * 0x9e3779b97f4a7c15u) >> 40) & (slots - 1);
  }

  __device__ void clear(shared& block) const {
    for (std::uint32_t s = threadIdx.x; s < slots; s += counting_sort::threads) block.first[s] = none;
    if (blockIdx.x == 0)
      for (std::uint32_t s = threadIdx.x; s < slots / 2; s += counting_sort::threads) block.positions[s] = 0;
    if (threadIdx.x < counting_sort::most_keys_of_block) {
      block.before[threadIdx.x] = 0;
      block.is_last[threadIdx.x] = true;
    }
  }

  /// Calls key_of for the block's own keys once more: no load above waits for what is recorded.
  __device__ void record() const {
    const std::uint32_t k = counting_sort::threads - 1 - threadIdx.x;
    const std::uint32_t position = blockIdx.x * static_cast<std::uint32_t>(keys_of_block) + k;
    if (k < static_cast<std::uint32_t>(keys_of_block) && position < count) key_of(position, true);
  }

  /// Enters the row of position p.
  __device__ void enter(shared& block, std::uint32_t p) const {
    const std::uint64_t key_row = row(block.keys[p]);
    if (key_row >= segments.places.rows) return;
    const int position = static_cast<int>(p);
    std::uint32_t slot = slot_of(key_row);
    for (;; slot = (slot + 1) & (slots - 1)) {
      // Read first: one row may have all positions, and atomic operations on one word follow one another.
      int rival = *static_cast<volatile int*>(&block.first[slot]);
      if (rival == none) rival = atomicCAS(&block.first[slot], none, position);
      if (rival == none) break;
      if (row(block.keys[rival]) != key_row) continue;
      if (rival > position) atomicMin(&block.first[slot], position);
      break;
    }
    if (blockIdx.x == 0) atomicAdd(&block.positions[slot / 2], 1u << slot % 2 * 16);
  }
  /// The slot of a row; one without a position if there is none.
  __device__ std::uint32_t find(const shared& block, std::uint64_t key_row) const {
    std::uint32_t slot = slot_of(key_row);
    while (block.first[slot] != none && row(block.keys[block.first[slot]]) != key_row)
      slot = (slot + 1) & (slots - 1);
    return slot;
  }
  __device__ void mark(shared& block, std::uint32_t p) const {
    const std::uint64_t key_row = row(block.keys[p]);
    std::uint16_t begins = 0;
    if (key_row < segments.places.rows) {
      const std::uint32_t slot = find(block, key_row);
      if (block.first[slot] == static_cast<int>(p)) {
        begins = key_row == 0 || block.first[find(block, key_row - 1)] == none ? 257 : 1;
        if (blockIdx.x == 0) segments.note(block.positions[slot / 2] >> slot % 2 * 16 & 0xffffu);
      }
    }
    block.begins[p] = begins;
  }

  /// before[k] = the numbers of keys below the block's key k (16 bits), and of segments and of runs (16 bits
  /// each) that begin up to it.
  __device__ void compare(shared& block) const {
    const std::uint32_t sharing = counting_sort::threads / static_cast<std::uint32_t>(keys_of_block);
    const std::uint32_t k = threadIdx.x / sharing;
    const std::uint32_t position = blockIdx.x * static_cast<std::uint32_t>(keys_of_block) + k;
    if (position >= count) return;  // with all lanes of its warp
    const std::uint64_t key = block.keys[position];
    const std::uint64_t end = segments.places.rows << segments.places.position_bits;
    std::uint32_t smaller = 0, begun = 0;
    bool is_last = true;
#pragma unroll 4
    for (std::uint32_t p = threadIdx.x % sharing; p < count; p += sharing) {
      const std::uint64_t rival = block.keys[p];
      const std::uint32_t begins = block.begins[p];
      smaller += rival < key ? 1 : 0;
      begun += rival <= key ? begins : 0;
      is_last = is_last && (rival <= key || rival >= end);
    }
    // A lane has seen at most 32 keys: bytes held their numbers.
    unsigned long long sum = smaller | static_cast<unsigned long long>(begun & 0xffu) << 16 |
                             static_cast<unsigned long long>(begun >> 8) << 32;
    for (int step = 1; step < 32; step *= 2) sum += __shfl_xor_sync(all_lanes, sum, step);
    is_last = __all_sync(all_lanes, is_last) != 0;
    if (threadIdx.x % 32 != 0) return;
    atomicAdd(&block.before[k], sum);
    if (!is_last) block.is_last[k] = false;
  }

  __device__ void place(const shared& block) const {
    const std::uint32_t k = threadIdx.x;
    const std::uint32_t position = blockIdx.x * static_cast<std::uint32_t>(keys_of_block) + k;
    if (k >= static_cast<std::uint32_t>(keys_of_block) || position >= count) return;
    const std::uint64_t key = block.keys[position];
    const std::uint64_t before = block.before[k];
    const std::uint32_t begins = block.begins[position];
    segments.put(static_cast<std::int64_t>(before & 0xffffu),
                 {row(key), position, (before >> 16 & 0xffffu) | before >> 32 << 32,
                  std::uint64_t{begins & 1u} | std::uint64_t{begins >> 8} << 32, block.is_last[k]});
  }
};

template <class Keys, class Segments>
__global__ void __launch_bounds__(counting_sort::threads)
    sort_keys_by_counting(sort_by_counting<Keys, Segments> sort) {
  __shared__ typename sort_by_counting<Keys, Segments>::shared block;
  sort.run(block);
}

template <class Keys, class Segments>
cudaError_t launch_counting_sort(cudaStream_t stream, const Keys& key_of, const Segments& segments,
                                 std::int64_t count) {
  std::uint32_t slots = 2;
  while (slots < 2 * count) slots *= 2;
  sort_by_counting<Keys, Segments> sort{key_of, segments, static_cast<std::uint32_t>(count),
                                        counting_sort::keys_of_block(count), slots};
  void* arguments[] = {&sort};
  const auto kernel = sort_keys_by_counting<Keys, Segments>;
  const dim3 blocks(static_cast<unsigned int>(counting_sort::blocks_for(count)));
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), blocks, dim3(counting_sort::threads),
                          arguments, 0, stream);
}

}  // namespace ferry::cuda
