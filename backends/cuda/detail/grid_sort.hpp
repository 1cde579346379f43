// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ferry::cuda {

/// Sizes of a stable radix sort of keys in one launch, for batches that fit into the device's multiprocessors
/// together. CUB needs ten launches for three digits, which dominate its time for some hundred thousand keys:
/// with its sort a plan of 131072 indices into a million rows takes 0.074 ms, with this one, where other
/// kernels made the keys and placed the segments, 0.052 ms (H200).
///
/// The launch is a cooperative one: all blocks must be resident at once, so the sort starts when there is
/// room for all of them, and waits for earlier kernels until then. It has at most one block per
/// multiprocessor, and two fit into one, so half of the device is enough. Kernels that wait for other work
/// (NCCL's, say) do not delay it while they leave half of the multiprocessors free. Where they occupy more
/// and wait for work that comes after the sort, both deadlock.
struct grid_sort {
  static constexpr int threads = 512;
  static constexpr int blocks_in_one = 2;  ///< per multiprocessor: by registers, shared memory and threads
  static constexpr int warps = threads / 32;
  static constexpr int most_items = 8;  ///< keys per thread
  static constexpr int digit_bits = 8;
  static constexpr int bins = 1 << digit_bits;
  static constexpr std::int64_t most_blocks = 1024;
  static constexpr int counts_at_once = 8;  ///< in one load

  static std::int64_t blocks_for(std::int64_t count, int items) {
    const std::int64_t tile = std::int64_t{threads} * items;
    return (count + tile - 1) / tile;
  }
  /// Keys per thread for `count` keys in at most `blocks` blocks; 0 if they don't fit.
  static int items_for(std::int64_t count, std::int64_t blocks) {
    const std::int64_t most = std::min<std::int64_t>(most_blocks, blocks);
    for (int items = 1; items <= most_items; items *= 2)
      if (blocks_for(count, items) <= most) return items;
    return 0;
  }
  /// Shared memory of a block, rounded up, with the kilobyte that the driver keeps: counts of each warp,
  /// places of digits and sums of warps.
  static constexpr int shared_bytes = warps * bins * 2 + bins * 4 + 2 * 1024;
  /// Distance of the counts of two digits: the number of blocks, padded.
  static std::int64_t stride_for(std::int64_t blocks) {
    return (blocks + counts_at_once - 1) / counts_at_once * counts_at_once;
  }
  /// Scratch bytes for `count` keys on any device: for the counts, whose place the sums of the blocks take
  /// afterwards.
  static std::size_t bytes(std::int64_t count) {
    const std::int64_t blocks = std::min(most_blocks, blocks_for(count, 1));
    return static_cast<std::size_t>(bins * stride_for(blocks)) * sizeof(std::uint16_t);
  }
  static int passes_for(int bits) { return (bits + digit_bits - 1) / digit_bits; }
};

}  // namespace ferry::cuda
