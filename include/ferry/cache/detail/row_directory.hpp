// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The slot of a row that is being loaded, as find() returns it, and back.
KOKKOS_FORCEINLINE_FUNCTION constexpr std::int64_t coming(std::int64_t slot) { return -slot - 2; }

/// Of the entries of rows that are being loaded.
inline constexpr std::uint32_t coming_bit = std::uint32_t{1} << 31;

/// Which slot of device memory has a row, as kernels find it: a number for each row of the table, the slot + 1,
/// or 0 for none. A lookup reads one sector. No two threads change the entry of one row in one kernel.
struct row_directory {
  std::uint32_t* slot_of;

  /// The slot; negative if the row is to be read from and written to host memory: -1, or coming(slot) while
  /// the row is being loaded into that slot.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t find(std::int64_t row) const {
    const std::uint32_t entry = slot_of[row];
    const std::int64_t slot = static_cast<std::int64_t>(entry & ~coming_bit) - 1;
    return (entry & coming_bit) == 0 ? slot : coming(slot);
  }
  /// True if a row with this word in slot_of is in its slot.
  KOKKOS_FORCEINLINE_FUNCTION static bool is_cached(std::uint32_t entry) {
    return entry != 0 && (entry & coming_bit) == 0;
  }
  /// The row is about to be loaded into that slot.
  KOKKOS_FORCEINLINE_FUNCTION void announce(std::int64_t row, std::int64_t slot) const {
    slot_of[row] = static_cast<std::uint32_t>(slot + 1) | coming_bit;
  }
  /// The row is in that slot from now on.
  KOKKOS_FORCEINLINE_FUNCTION void insert(std::int64_t row, std::int64_t slot) const {
    slot_of[row] = static_cast<std::uint32_t>(slot + 1);
  }
  KOKKOS_FORCEINLINE_FUNCTION void erase(std::int64_t row) const { slot_of[row] = 0; }
};

}  // namespace ferry::kernels
