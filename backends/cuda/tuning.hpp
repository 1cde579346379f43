// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../device_tuning.hpp"

#include <bit>
#include <cstdint>

namespace ferry::cuda {

/// One set for each device generation, selected at run time by the compute capability of the instance's
/// device. Kernels are compiled for the static numbers.
using tuning_numbers = device_tuning;

/// Compute capability 9.0. Measured on an H200: PCIe 5 x16, 16 host cores, CUDA 13.0.
inline constexpr tuning_numbers hopper{};

/// The sizes of a device that the numbers depend on.
struct device_size {
  int multiprocessors = 0;
  std::int64_t cache_bytes = 0;  ///< of the second level
};

/// The size that FERRY_WITHOUT=large_device gives to every device.
inline constexpr device_size small_device{16, std::int64_t{4} << 20};

/// The numbers for devices of a compute capability and size. Only Hopper has readings; the other generations
/// get its numbers, less those that depend on the size.
[[nodiscard]] constexpr tuning_numbers tuning_for([[maybe_unused]] int generation, device_size size) {
  tuning_numbers numbers = hopper;
  if (size.multiprocessors > 0) numbers = numbers.for_multiprocessors(size.multiprocessors);
  // A claim takes 16 bytes of the table, 4 for its slot's number and at least 4 of the index.
  constexpr std::int64_t bytes_of_a_claim = 24;
  if (const std::int64_t claims = size.cache_bytes / bytes_of_a_claim; claims > 0)
    numbers.most_for_winners = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(claims)));
  return numbers;
}
static_assert(tuning_for(9, {132, std::int64_t{60} << 20}).most_for_winners == hopper.most_for_winners &&
                  tuning_for(9, {132, std::int64_t{50} << 20}).most_for_winners == hopper.most_for_winners,
              "the size of an H200 and that of an H100 give the numbers that were measured");

}  // namespace ferry::cuda
