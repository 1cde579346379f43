// SPDX-License-Identifier: Apache-2.0
#include "sort.hpp"

#include "../sorted_keys.hpp"
#include "error.hpp"

#include <ferry/memory/detail/tools.hpp>

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
#include <string>

/// The functions of sort_functions that CUB implements.
namespace ferry::cuda {

std::size_t sort_functions::sort_bytes(std::int64_t count, int first_bit, int bits) {
  std::size_t bytes = 0;
  cub::DoubleBuffer<std::uint64_t> keys(nullptr, nullptr);
  cub::DoubleBuffer<std::int64_t> values(nullptr, nullptr);
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, count, first_bit, bits),
        "cub::DeviceRadixSort");
  return bytes;
}

void sort_functions::sort_pairs(const Kokkos::Cuda& exec, std::uint64_t*& keys, std::uint64_t* other_keys,
                                std::int64_t*& values, std::int64_t* other_values, std::int64_t count,
                                int first_bit, int bits, void* workspace, std::size_t workspace_bytes) {
  const device_guard guard(exec);
  static const std::string label = "ferry::make_plan::sort";
  const detail::tool_kernel reported(exec, label);
  cub::DoubleBuffer<std::uint64_t> key_buffers(keys, other_keys);
  cub::DoubleBuffer<std::int64_t> value_buffers(values, other_values);
  check(cub::DeviceRadixSort::SortPairs(workspace, workspace_bytes, key_buffers, value_buffers, count,
                                        first_bit, bits, exec.cuda_stream()),
        "cub::DeviceRadixSort");
  keys = key_buffers.Current();
  values = value_buffers.Current();
}

std::size_t sort_functions::sort_keys_bytes(std::int64_t count, int first_bit, int bits) {
  std::size_t bytes = 0;
  cub::DoubleBuffer<std::uint64_t> keys(nullptr, nullptr);
  check(cub::DeviceRadixSort::SortKeys(nullptr, bytes, keys, static_cast<std::uint32_t>(count), first_bit,
                                       bits),
        "cub::DeviceRadixSort");
  return std::max(bytes, grid_sort::bytes(count));
}

void sort_functions::sort_keys(const Kokkos::Cuda& exec, std::uint64_t*& keys, std::uint64_t* other_keys,
                               std::int64_t count, int first_bit, int bits, void* workspace,
                               std::size_t workspace_bytes) {
  const device_guard guard(exec);
  static const std::string label = "ferry::make_plan::sort";
  const detail::tool_kernel reported(exec, label);
  cub::DoubleBuffer<std::uint64_t> buffers(keys, other_keys);
  check(cub::DeviceRadixSort::SortKeys(workspace, workspace_bytes, buffers, static_cast<std::uint32_t>(count),
                                       first_bit, bits, exec.cuda_stream()),
        "cub::DeviceRadixSort");
  keys = buffers.Current();
}

struct widened_count {
  KOKKOS_FUNCTION std::uint64_t operator()(std::uint32_t count) const { return count; }
};

inline auto terms_of(const std::uint32_t* counts) {
  return thrust::make_transform_iterator(counts, widened_count{});
}
inline auto terms_of(const kernels::sorted_keys& keys) {
  return thrust::make_transform_iterator(thrust::make_counting_iterator(std::int64_t{0}), keys);
}

template <class Terms>
std::size_t sort_functions::sum_bytes(std::int64_t count) {
  std::size_t bytes = 0;
  std::uint64_t* sums = nullptr;
  check(cub::DeviceScan::InclusiveSum(nullptr, bytes, terms_of(Terms{}), sums,
                                      static_cast<std::uint32_t>(count)),
        "cub::DeviceScan");
  return bytes;
}

template <class Terms>
void sort_functions::inclusive_sum(const Kokkos::Cuda& exec, const Terms& terms, std::uint64_t* sums,
                                   std::int64_t count, void* workspace, std::size_t workspace_bytes) {
  const device_guard guard(exec);
  check(cub::DeviceScan::InclusiveSum(workspace, workspace_bytes, terms_of(terms), sums,
                                      static_cast<std::uint32_t>(count), exec.cuda_stream()),
        "cub::DeviceScan");
}

template std::size_t sort_functions::sum_bytes<kernels::sorted_keys>(std::int64_t);
template std::size_t sort_functions::sum_bytes<const std::uint32_t*>(std::int64_t);
template void sort_functions::inclusive_sum(const Kokkos::Cuda&, const kernels::sorted_keys&, std::uint64_t*,
                                            std::int64_t, void*, std::size_t);
template void sort_functions::inclusive_sum(const Kokkos::Cuda&, const std::uint32_t* const&, std::uint64_t*,
                                            std::int64_t, void*, std::size_t);

}  // namespace ferry::cuda
