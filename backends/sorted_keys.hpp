// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Sorted keys. A segment is all places of one row. A segment whose row does not follow the row before it
/// begins a run.
struct sorted_keys {
  const std::uint64_t* keys;
  std::int64_t count;
  std::uint64_t rows;
  int position_bits;

  static constexpr int runs_shift = 32;

  KOKKOS_FUNCTION std::uint64_t row(std::int64_t k) const { return keys[k] >> position_bits; }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const {
    return static_cast<std::int64_t>(keys[k] & ((std::uint64_t{1} << position_bits) - 1));
  }
  /// The summand of place k in the numbers of segments (lower half) and of runs (upper half) that have begun.
  KOKKOS_FUNCTION std::uint64_t operator()(std::int64_t k) const {
    const std::uint64_t current = row(k);
    if (current >= rows) return 0;
    const std::uint64_t before = k == 0 ? current + 2 : row(k - 1);
    return std::uint64_t{before != current} | std::uint64_t{before != current && before + 1 != current}
                                                  << runs_shift;
  }
};

KOKKOS_INLINE_FUNCTION std::uint64_t term(const std::uint32_t* counts, std::int64_t k) { return counts[k]; }
KOKKOS_INLINE_FUNCTION std::uint64_t term(const sorted_keys& keys, std::int64_t k) { return keys(k); }

/// Inclusive sums of terms, by a scan.
template <class Terms>
struct running_sum {
  Terms terms;
  std::uint64_t* sums;

  using value_type = std::uint64_t;
  KOKKOS_FUNCTION void operator()(std::int64_t k, std::uint64_t& sum, bool final) const {
    sum += term(terms, k);
    if (final) sums[k] = sum;
  }
};

}  // namespace ferry::kernels
