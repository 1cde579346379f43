// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// The directories of a row cache, as its kernels use them. A directory says which slot of device memory has
/// a row:
///   find(row)           the slot; negative if the row is to be read from and written to host memory: -1,
///                       or coming(slot) while the row is being loaded into that slot
///   announce(row, slot) the row is about to be loaded into that slot
///   insert(row, slot)   the row is in that slot from now on
///   erase(row, slot)    the slot of that row is free
/// No two threads change the entry of one row or of one slot in one kernel. Zeros are an empty directory.
namespace ferry::kernels {

/// The slot of a row that is being loaded, as find() returns it, and back.
KOKKOS_FORCEINLINE_FUNCTION constexpr std::int64_t coming(std::int64_t slot) { return -slot - 2; }

/// Of the entries of rows that are being loaded.
inline constexpr std::uint32_t coming_bit = std::uint32_t{1} << 31;

/// One number per row of the table: the slot + 1. Exact; a lookup reads one sector.
struct dense_directory {
  std::uint32_t* slot_of;

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t find(std::int64_t row) const {
    const std::uint32_t entry = slot_of[row];
    const std::int64_t slot = static_cast<std::int64_t>(entry & ~coming_bit) - 1;
    return (entry & coming_bit) == 0 ? slot : coming(slot);
  }
  /// True if a row with this word in slot_of is in its slot.
  KOKKOS_FORCEINLINE_FUNCTION static bool is_cached(std::uint32_t entry) {
    return entry != 0 && (entry & coming_bit) == 0;
  }
  KOKKOS_FORCEINLINE_FUNCTION void announce(std::int64_t row, std::int64_t slot) const {
    slot_of[row] = static_cast<std::uint32_t>(slot + 1) | coming_bit;
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
    const std::int64_t multiple = sets.quotient(row);
    const std::int64_t first = (row - multiple * sets.divisor()) * ways;
    const auto tag = static_cast<std::uint32_t>(multiple + 1);
    const auto* line = reinterpret_cast<const packet<std::uint32_t, at_once>*>(tags + first);
    std::int64_t slot = -1;
    for (int p = 0; p < ways / at_once; ++p) {
      const auto part = line[p];
      for (int w = 0; w < at_once; ++w)
        if ((part.value[w] & ~coming_bit) == tag) {
          slot = first + std::int64_t{p} * at_once + w;
          if (part.value[w] != tag) slot = coming(slot);
        }
    }
    return slot;
  }
  KOKKOS_FORCEINLINE_FUNCTION void announce(std::int64_t row, std::int64_t slot) const {
    tags[slot] = static_cast<std::uint32_t>(sets.quotient(row) + 1) | coming_bit;
  }
  KOKKOS_FORCEINLINE_FUNCTION void insert(std::int64_t row, std::int64_t slot) const {
    tags[slot] = static_cast<std::uint32_t>(sets.quotient(row) + 1);
  }
  KOKKOS_FORCEINLINE_FUNCTION void erase(std::int64_t, std::int64_t slot) const { tags[slot] = 0; }
};

}  // namespace ferry::kernels
