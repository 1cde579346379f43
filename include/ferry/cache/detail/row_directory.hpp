// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// The directories of a row cache, as its kernels use them. A directory says which slot of device memory has
/// a row:
///   find(row)          the slot, -1 where the row is in host memory only
///   insert(row, slot)  the row is in that slot from now on
///   erase(row, slot)   the slot of that row is free
/// No two threads change the entry of one row or of one slot in one kernel. Zeros are an empty directory.
namespace ferry::kernels {

/// One number per row of the table: the slot + 1. Exact; a lookup reads one sector.
struct dense_directory {
  std::uint32_t* slot_of;

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t find(std::int64_t row) const {
    return static_cast<std::int64_t>(slot_of[row]) - 1;
  }
  KOKKOS_FORCEINLINE_FUNCTION void insert(std::int64_t row, std::int64_t slot) const {
    slot_of[row] = static_cast<std::uint32_t>(slot + 1);
  }
  KOKKOS_FORCEINLINE_FUNCTION void erase(std::int64_t row, std::int64_t) const { slot_of[row] = 0; }
};

/// Row r may be in any of the 32 slots of set r % sets. The tag of a slot is r / sets + 1, and the tags of a
/// set are one line of 128 bytes.
struct set_directory {
  static constexpr int ways = 32;
  static constexpr int at_once = 4;  ///< tags of one load

  std::uint32_t* tags;
  detail::fast_divisor sets;

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t find(std::int64_t row) const {
    const std::int64_t among = sets.quotient(row);
    const std::int64_t first = (row - among * sets.divisor()) * ways;
    const auto wanted = static_cast<std::uint32_t>(among + 1);
    const auto* line = reinterpret_cast<const packet<std::uint32_t, at_once>*>(tags + first);
    std::int64_t found = -1;
    for (int p = 0; p < ways / at_once; ++p) {
      const auto some = line[p];
      for (int w = 0; w < at_once; ++w)
        if (some.value[w] == wanted) found = first + std::int64_t{p} * at_once + w;
    }
    return found;
  }
  KOKKOS_FORCEINLINE_FUNCTION void insert(std::int64_t row, std::int64_t slot) const {
    tags[slot] = static_cast<std::uint32_t>(sets.quotient(row) + 1);
  }
  KOKKOS_FORCEINLINE_FUNCTION void erase(std::int64_t, std::int64_t slot) const { tags[slot] = 0; }
};

}  // namespace ferry::kernels
