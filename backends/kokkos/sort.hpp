// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::kokkos {

/// Stable radix sorts and a scan by kernels of Kokkos, on an instance, without synchronisation. A pass sorts
/// by four bits, least significant ones first: it counts the digits of runs of keys, adds the counts up by a
/// scan, and moves the keys of each run in order.
struct sort_functions {
  /// Scratch bytes of sort_pairs, in addition to its arrays: for the counts of runs.
  static std::size_t sort_bytes(std::int64_t count, int first_bit, int bits);

  /// Sorts pairs by the bits [first_bit, bits) of their keys. On return `keys` and `values` point to the
  /// sorted arrays, each one of the two that were passed.
  template <ExecutionSpace Exec>
  static void sort_pairs(const Exec& exec, std::uint64_t*& keys, std::uint64_t* other_keys,
                         std::int64_t*& values, std::int64_t* other_values, std::int64_t count, int first_bit,
                         int bits, void* workspace, std::size_t workspace_bytes);

  static std::size_t sort_keys_bytes(std::int64_t count, int first_bit, int bits) {
    return sort_bytes(count, first_bit, bits);
  }
  /// As sort_pairs, for keys without values.
  template <ExecutionSpace Exec>
  static void sort_keys(const Exec& exec, std::uint64_t*& keys, std::uint64_t* other_keys, std::int64_t count,
                        int first_bit, int bits, void* workspace, std::size_t workspace_bytes) {
    std::int64_t* no_values = nullptr;
    sort_pairs(exec, keys, other_keys, no_values, nullptr, count, first_bit, bits, workspace,
               workspace_bytes);
  }

  template <class Terms>
  static std::size_t sum_bytes(std::int64_t) {
    return 0;
  }
  /// sums[k] = the sum of the terms 0 to k, for k in [0, count) and terms of type const std::uint32_t* or
  /// kernels::sorted_keys.
  template <ExecutionSpace Exec, class Terms>
  static void inclusive_sum(const Exec& exec, const Terms& terms, std::uint64_t* sums, std::int64_t count,
                            void* workspace, std::size_t workspace_bytes);

  /// No plan is made in one launch.
  /// @{
  template <ExecutionSpace Exec>
  static bool sorts_in_one_launch(const Exec&, std::int64_t) {
    return false;
  }
  template <ExecutionSpace Exec, class Keys, class Segments>
  static bool sort_and_place(const Exec&, const Keys&, const Segments&, std::uint64_t*, std::uint64_t*,
                             unsigned int*, std::int64_t, int, int, void*, std::size_t) {
    return false;
  }
  /// @}
};

}  // namespace ferry::kokkos
