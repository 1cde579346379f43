// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../device.hpp"
#include "../error.hpp"
#include "../sort.hpp"
#include "../tuning.hpp"
#include "grid_sort.hpp"
#include "sort_by_counting.hpp"
#include "sort_by_grid.hpp"

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry::cuda {

static_assert(tuning_numbers::keys_compared <= counting_sort::most_keys,
              "ferry: a block holds all keys that are compared.");
template <class Keys, class Segments>
bool sort_functions::sort_and_place(const Kokkos::Cuda& exec, const Keys& key_of, const Segments& segments,
                                    std::uint64_t* keys, std::uint64_t* other_keys, unsigned int* arrived,
                                    std::int64_t count, int first_bit, int bits, void* workspace,
                                    std::size_t workspace_bytes) {
  if (sorts_without_scratch(count)) {
    const device_guard guard(exec);
    check(launch_counting_sort(exec.cuda_stream(),
                               sort_by_counting<Keys, Segments>{key_of, segments, keys, arrived,
                                                                static_cast<std::uint32_t>(count)}),
          "cudaLaunchKernel");
    return true;
  }
  const int passes = grid_sort::passes_for(bits - first_bit);
  if (passes == 0 || workspace_bytes < grid_sort::bytes(count) ||
      reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0)
    return false;
  const device_guard guard(exec);
  const auto launched = [&]<int Items>(std::integral_constant<int, Items>) {
    const std::int64_t blocks = grid_sort::blocks_for(count, Items);
    const cudaError_t status = launch_grid_sort(
        exec.cuda_stream(), blocks,
        sort_by_grid<Items, Keys, Segments>{
            key_of, segments, keys, other_keys, static_cast<std::uint16_t*>(workspace),
            static_cast<std::uint32_t>(grid_sort::stride_for(blocks)), static_cast<std::uint32_t>(count),
            first_bit, passes, (bits - first_bit + passes - 1) / passes});
    if (status == cudaSuccess) return true;
    if (status != cudaErrorCooperativeLaunchTooLarge && status != cudaErrorNotSupported)
      check(status, "cudaLaunchCooperativeKernel");
    cudaGetLastError();
    return false;
  };
  switch (items_for(exec, count)) {
    case 1:
      return launched(std::integral_constant<int, 1>{});
    case 2:
      return launched(std::integral_constant<int, 2>{});
    case 4:
      return launched(std::integral_constant<int, 4>{});
    case 8:
      return launched(std::integral_constant<int, 8>{});
    default:
      return false;
  }
}

}  // namespace ferry::cuda
