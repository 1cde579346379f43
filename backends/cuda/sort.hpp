// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "detail/grid_sort.hpp"
#include "device.hpp"
#include "error.hpp"

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_radix_sort.cuh>
// g++ 12 takes a member for uninitialised that CUB sets in a call.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <cub/device/device_scan.cuh>
#pragma GCC diagnostic pop

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace ferry::cuda {

/// Stable radix sorts and a scan, on the stream of an instance, without synchronisation. They use CUB; keys
/// without values are sorted by one launch of grid_sort where that is faster. Templates, so that
/// only who sorts compiles the kernels.
struct sort_functions {
  /// Scratch bytes of sort_pairs, in addition to its arrays. For the current device, as for the functions
  /// below.
  template <class Key = std::uint64_t>
  static std::size_t sort_bytes(std::int64_t count, int first_bit, int bits) {
    std::size_t bytes = 0;
    cub::DoubleBuffer<Key> keys(nullptr, nullptr);
    cub::DoubleBuffer<std::int64_t> values(nullptr, nullptr);
    check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, count, first_bit, bits),
          "cub::DeviceRadixSort");
    return bytes;
  }

  /// Sorts pairs by the bits [first_bit, bits) of their keys. On return `keys` and `values` point to the
  /// sorted arrays, each one of the two that were passed.
  template <class Key>
  static void sort_pairs(const Kokkos::Cuda& exec, Key*& keys, Key* other_keys, std::int64_t*& values,
                         std::int64_t* other_values, std::int64_t count, int first_bit, int bits,
                         void* workspace, std::size_t workspace_bytes) {
    const device_guard on(exec);
    cub::DoubleBuffer<Key> key_buffers(keys, other_keys);
    cub::DoubleBuffer<std::int64_t> value_buffers(values, other_values);
    check(cub::DeviceRadixSort::SortPairs(workspace, workspace_bytes, key_buffers, value_buffers, count,
                                          first_bit, bits, exec.cuda_stream()),
          "cub::DeviceRadixSort");
    keys = key_buffers.Current();
    values = value_buffers.Current();
  }

  /// Scratch bytes of sort_keys. Counts of the functions below are less than 2^32, so CUB uses 32-bit
  /// offsets.
  template <class Key = std::uint64_t>
  static std::size_t sort_keys_bytes(std::int64_t count, int first_bit, int bits) {
    std::size_t bytes = 0;
    cub::DoubleBuffer<Key> keys(nullptr, nullptr);
    check(cub::DeviceRadixSort::SortKeys(nullptr, bytes, keys, static_cast<std::uint32_t>(count), first_bit,
                                         bits),
          "cub::DeviceRadixSort");
    return std::max(bytes, grid_sort::bytes(count));
  }
  /// As sort_pairs, for keys without values and without set bits from `bits` on. The workspace is aligned to
  /// 16 bytes.
  template <class Key>
  static void sort_keys(const Kokkos::Cuda& exec, Key*& keys, Key* other_keys, std::int64_t count,
                        int first_bit, int bits, void* workspace, std::size_t workspace_bytes) {
    const device_guard on(exec);
    if (sort_in_one_launch(exec, keys, other_keys, count, first_bit, bits, workspace, workspace_bytes))
      return;
    cub::DoubleBuffer<Key> buffers(keys, other_keys);
    check(
        cub::DeviceRadixSort::SortKeys(workspace, workspace_bytes, buffers, static_cast<std::uint32_t>(count),
                                       first_bit, bits, exec.cuda_stream()),
        "cub::DeviceRadixSort");
    keys = buffers.Current();
  }

  /// Scratch bytes of inclusive_sum, for a functor of type Term.
  template <class Term>
  static std::size_t sum_bytes(std::int64_t count) {
    std::size_t bytes = 0;
    std::uint64_t* to = nullptr;
    check(cub::DeviceScan::InclusiveSum(nullptr, bytes, terms_of(Term{}), to,
                                        static_cast<std::uint32_t>(count)),
          "cub::DeviceScan");
    return bytes;
  }
  /// sums[k] = term(0) + ... + term(k) for k in [0, count).
  template <class Term>
  static void inclusive_sum(const Kokkos::Cuda& exec, const Term& term, std::uint64_t* sums,
                            std::int64_t count, void* workspace, std::size_t workspace_bytes) {
    const device_guard on(exec);
    check(cub::DeviceScan::InclusiveSum(workspace, workspace_bytes, terms_of(term), sums,
                                        static_cast<std::uint32_t>(count), exec.cuda_stream()),
          "cub::DeviceScan");
  }

 private:
  template <class Term>
  static auto terms_of(const Term& term) {
    return thrust::make_transform_iterator(thrust::make_counting_iterator(std::int64_t{0}), term);
  }

  /// Sorts by grid_sort. Returns false for too few or too many keys, and where the device can't run all
  /// blocks at once.
  template <class Key>
  static bool sort_in_one_launch(const Kokkos::Cuda& exec, Key*& keys, Key* other_keys, std::int64_t count,
                                 int first_bit, int bits, void* workspace, std::size_t workspace_bytes) {
    if (workspace_bytes < grid_sort::bytes(count) || reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0)
      return false;
    const int device = exec.cuda_device();
    if (attribute(cudaDevAttrCooperativeLaunch, device) == 0) return false;
    const int items = grid_sort::items_for(count, attribute(cudaDevAttrMultiProcessorCount, device));
    const int passes = grid_sort::passes_for(bits - first_bit);
    if (items == 0 || passes == 0) return false;
    const int width = (bits - first_bit + passes - 1) / passes;
    const auto stride =
        static_cast<std::uint32_t>(grid_sort::stride_for(grid_sort::blocks_for(count, items)));
    auto* const counts = static_cast<std::uint16_t*>(workspace);
    const auto n = static_cast<std::uint32_t>(count);
    const cudaStream_t stream = exec.cuda_stream();
    const auto launched = [&]() -> cudaError_t {
      switch (items) {
        case 1:
          return launch_grid_sort<1>(stream, {keys, other_keys, counts, stride, n, first_bit, passes, width});
        case 2:
          return launch_grid_sort<2>(stream, {keys, other_keys, counts, stride, n, first_bit, passes, width});
        case 4:
          return launch_grid_sort<4>(stream, {keys, other_keys, counts, stride, n, first_bit, passes, width});
        default:
          return launch_grid_sort<8>(stream, {keys, other_keys, counts, stride, n, first_bit, passes, width});
      }
    }();
    if (launched == cudaErrorCooperativeLaunchTooLarge || launched == cudaErrorNotSupported) {
      cudaGetLastError();
      return false;
    }
    check(launched, "cudaLaunchCooperativeKernel");
    if (passes % 2 != 0) std::swap(keys, other_keys);
    return true;
  }
};

}  // namespace ferry::cuda
