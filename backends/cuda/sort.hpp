// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "detail/abilities.hpp"
#include "detail/grid_sort.hpp"
#include "device.hpp"
#include "tuning.hpp"

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace ferry::cuda {

/// Stable sorts and a scan, on the stream of an instance, without synchronisation. They use CUB, and
/// counting_sort or grid_sort if one launch does it all.
struct sort_functions {
  /// Scratch bytes of sort_pairs, in addition to its arrays. For the current device, as for the functions
  /// below.
  static std::size_t sort_bytes(std::int64_t count, int first_bit, int bits);

  /// Sorts pairs by the bits [first_bit, bits) of their keys. On return `keys` and `values` point to the
  /// sorted arrays, each one of the two that were passed.
  static void sort_pairs(const Kokkos::Cuda& exec, std::uint64_t*& keys, std::uint64_t* other_keys,
                         std::int64_t*& values, std::int64_t* other_values, std::int64_t count, int first_bit,
                         int bits, void* workspace, std::size_t workspace_bytes);

  /// Scratch bytes of sort_keys. Counts of the functions below are less than 2^32, so CUB uses 32-bit
  /// offsets.
  static std::size_t sort_keys_bytes(std::int64_t count, int first_bit, int bits);
  /// As sort_pairs, for keys without values and without set bits from `bits` on. The workspace is aligned to
  /// 16 bytes.
  static void sort_keys(const Kokkos::Cuda& exec, std::uint64_t*& keys, std::uint64_t* other_keys,
                        std::int64_t count, int first_bit, int bits, void* workspace,
                        std::size_t workspace_bytes);

  /// The work of making keys, sort_keys, inclusive_sum and of a kernel after them, in one launch:
  ///
  ///   key_of(p, record)       the key of position p in [0, count), unlike that of any other position. Called
  ///                           once with `record`, and any number of times without
  ///   segments.sorted(k)      the term of place k, read from the sorted keys at `segments.sorted.keys`: 0,
  ///                           1, or 1 + 2^32
  ///   segments.write(k, sum)  called for each place, with the sum of the terms up to it
  ///
  /// `keys` and `other_keys` are scratch memory; by place() the second one is free. The workspace is as for
  /// sort_keys; none is needed for keys that sorts_without_scratch. `arrived` is a word that is 0, and 0
  /// again when the kernel has ended. Returns false, and does nothing, for too many keys, and if the device
  /// can't run all blocks at once. Callers include backends/sorting.hpp.
  template <class Keys, class Segments>
  static bool sort_and_place(const Kokkos::Cuda& exec, const Keys& key_of, const Segments& segments,
                             std::uint64_t* keys, std::uint64_t* other_keys, unsigned int* arrived,
                             std::int64_t count, int first_bit, int bits, void* workspace,
                             std::size_t workspace_bytes);

  /// True if sort_and_place takes `count` keys.
  static bool sorts_in_one_launch(const Kokkos::Cuda& exec, std::int64_t count) {
    return sorts_without_scratch(count) || items_for(exec, count) != 0;
  }

  /// True if sort_and_place compares `count` keys with one another, on any device.
  static bool sorts_without_scratch(std::int64_t count) { return count <= tuning_numbers::keys_compared; }

  /// Scratch bytes of inclusive_sum, for terms of type Terms: const std::uint32_t* or kernels::sorted_keys.
  template <class Terms>
  static std::size_t sum_bytes(std::int64_t count);
  /// sums[k] = the sum of the terms 0 to k, for k in [0, count).
  template <class Terms>
  static void inclusive_sum(const Kokkos::Cuda& exec, const Terms& terms, std::uint64_t* sums,
                            std::int64_t count, void* workspace, std::size_t workspace_bytes);

 private:
  /// Keys per thread of grid_sort, with at most one block per multiprocessor; 0 for too many keys.
  static int items_for(const Kokkos::Cuda& exec, std::int64_t count) {
    const int device = exec.cuda_device();
    if (attribute(cudaDevAttrCooperativeLaunch, device) == 0) return 0;
    // Two blocks must fit into a multiprocessor, or the sort would need the whole device.
    const int room = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (room < grid_sort::blocks_in_one * grid_sort::shared_bytes) return 0;
    return grid_sort::items_for(count, multiprocessors_of(device));
  }
};

}  // namespace ferry::cuda
