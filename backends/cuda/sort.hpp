#pragma once

#include "error.hpp"

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>
#include <cub/device/device_radix_sort.cuh>

#include <cstddef>
#include <cstdint>

namespace ferry::cuda {

/// CUB's stable radix sort; on an instance's own stream, without synchronisation.
struct sort_functions {
  /// Scratch bytes that sort_pairs needs besides its arrays.
  static std::size_t sort_bytes(std::int64_t count, int first_bit, int bits) {
    std::size_t bytes = 0;
    cub::DoubleBuffer<std::uint64_t> keys(nullptr, nullptr);
    cub::DoubleBuffer<std::int64_t> values(nullptr, nullptr);
    check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, count, first_bit, bits),
          "cub::DeviceRadixSort");
    return bytes;
  }

  /// Sorts by the bits [first_bit, bits). On return `keys` and `values` point to the sorted arrays, one of the
  /// two given for each.
  static void sort_pairs(const Kokkos::Cuda& exec, std::uint64_t*& keys, std::uint64_t* other_keys,
                         std::int64_t*& values, std::int64_t* other_values, std::int64_t count, int first_bit,
                         int bits, void* workspace, std::size_t workspace_bytes) {
    cub::DoubleBuffer<std::uint64_t> key_buffers(keys, other_keys);
    cub::DoubleBuffer<std::int64_t> value_buffers(values, other_values);
    check(cub::DeviceRadixSort::SortPairs(workspace, workspace_bytes, key_buffers, value_buffers, count,
                                          first_bit, bits, exec.cuda_stream()),
          "cub::DeviceRadixSort");
    keys = key_buffers.Current();
    values = value_buffers.Current();
  }
};

}  // namespace ferry::cuda
