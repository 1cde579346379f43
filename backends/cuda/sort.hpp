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
  static std::size_t sort_bytes(std::int64_t count, int bits) {
    std::size_t bytes = 0;
    cub::DoubleBuffer<std::uint64_t> keys(nullptr, nullptr);
    cub::DoubleBuffer<std::int64_t> values(nullptr, nullptr);
    check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, count, 0, bits),
          "cub::DeviceRadixSort");
    return bytes;
  }

  static void sort_pairs(const Kokkos::Cuda& exec, std::uint64_t*& keys, std::uint64_t* other_keys,
                         std::int64_t*& values, std::int64_t* other_values, std::int64_t count, int bits,
                         void* workspace, std::size_t workspace_bytes) {
    cub::DoubleBuffer<std::uint64_t> key_buffers(keys, other_keys);
    cub::DoubleBuffer<std::int64_t> value_buffers(values, other_values);
    check(cub::DeviceRadixSort::SortPairs(workspace, workspace_bytes, key_buffers, value_buffers, count, 0,
                                          bits, exec.cuda_stream()),
          "cub::DeviceRadixSort");
    keys = key_buffers.Current();
    values = value_buffers.Current();
  }
};

}  // namespace ferry::cuda
