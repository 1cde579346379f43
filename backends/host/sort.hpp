// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>

#include <cstddef>
#include <cstdint>

/// Stable parallel radix sort of keys, with or without values: passes of up to 11 bits, one chunk per thread.
/// Each pass counts the digits of each chunk, computes the places of each digit chunk by chunk, and moves the
/// keys there. Few keys are sorted by insertion.
namespace ferry::host {

struct sort_functions {
  /// Scratch bytes of sort_pairs, in addition to its arrays: 16 KiB per 4096 pairs, up to 4 MiB, for any
  /// number of threads.
  static std::size_t sort_bytes(std::int64_t count, int first_bit, int bits);

  /// Sorts pairs by the bits [first_bit, bits) of their keys. On return `keys` and `values` point to the
  /// sorted arrays, each one of the two that were passed.
  template <HostExecutionSpace Exec>
  static void sort_pairs(const Exec& exec, std::uint64_t*& keys, std::uint64_t* other_keys,
                         std::int64_t*& values, std::int64_t* other_values, std::int64_t count, int first_bit,
                         int bits, void* workspace, std::size_t workspace_bytes);

  static std::size_t sort_keys_bytes(std::int64_t count, int first_bit, int bits) {
    return sort_bytes(count, first_bit, bits);
  }
  /// As sort_pairs, for keys without values.
  template <HostExecutionSpace Exec>
  static void sort_keys(const Exec& exec, std::uint64_t*& keys, std::uint64_t* other_keys, std::int64_t count,
                        int first_bit, int bits, void* workspace, std::size_t workspace_bytes);

  template <class Terms>
  static std::size_t sum_bytes(std::int64_t) {
    return 0;
  }
  /// sums[k] = the sum of the terms 0 to k, for k in [0, count) and terms of type const std::uint32_t* or
  /// kernels::sorted_keys.
  template <HostExecutionSpace Exec, class Terms>
  static void inclusive_sum(const Exec& exec, const Terms& terms, std::uint64_t* sums, std::int64_t count,
                            void* workspace, std::size_t workspace_bytes);
};

}  // namespace ferry::host
