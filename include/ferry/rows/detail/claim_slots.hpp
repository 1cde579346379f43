// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Core.hpp>

#include <bit>
#include <cstdint>

/// Finds which positions of a batch win their rows, the last ones or the first ones, without sorting:
/// positions that name one row meet in one slot of a hash table.
namespace ferry::kernels {

/// A hash table with a slot for each row that a batch names: (row, position) of the winner so far. Open
/// addressing with linear probing (Knuth, The Art of Computer Programming 3, 6.4), at most half full. A slot
/// never changes its row, and the best position of a row does not depend on the order in which they meet.
struct winner_table {
  using slot = unsigned long long;
  static constexpr slot empty = ~slot{0};  ///< no row has all bits set

  slot* slots = nullptr;
  int slot_bits = 1;
  int position_bits = 0;
  bool by_row = false;  ///< a row's slot is that of its number: the table has as many slots as rows

  /// The bits of a slot's number in a table for `positions` > 0 positions.
  static int slot_bits_for(std::int64_t positions) {
    return static_cast<int>(std::bit_width(2 * static_cast<std::uint64_t>(positions) - 1));
  }
  /// True if row and position fit a slot, and a slot's number 31 bits: 32 set bits mean none.
  static bool fits(std::int64_t positions, std::int64_t rows) {
    return slot_bits_for(positions) < 32 && std::bit_width(static_cast<std::uint64_t>(positions) - 1) +
                                                    std::bit_width(static_cast<std::uint64_t>(rows)) <=
                                                64;
  }

  /// The slot of a row, after `position` has competed for it: the highest position wins, or the lowest.
  template <class Atomics, bool Last>
  KOKKOS_FUNCTION std::uint32_t claim(std::int64_t row, std::int64_t position) const {
    const slot claim_word = static_cast<slot>(row) << position_bits | static_cast<slot>(position);
    const slot mask = (slot{1} << slot_bits) - 1;
    // Mixed twice: one product leaves rows at some equal distances (Fibonacci numbers) next to each other.
    slot mixed = static_cast<slot>(row) * 0x9e3779b97f4a7c15ull;
    mixed = (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15ull;
    for (slot place = by_row ? static_cast<slot>(row) : mixed >> (64 - slot_bits);;
         place = (place + 1) & mask) {
      slot entry = Atomics::atomic_read(slots + place);
      if (entry == empty) entry = Kokkos::atomic_compare_exchange(slots + place, empty, claim_word);
      if (entry == empty) return static_cast<std::uint32_t>(place);
      if (entry >> position_bits != claim_word >> position_bits) continue;
      // A position that has lost already needs no atomic: one row may have all of them.
      if (Last && entry < claim_word) Atomics::atomic_raise(slots + place, claim_word);
      if (!Last && claim_word < entry) Atomics::atomic_lower(slots + place, claim_word);
      return static_cast<std::uint32_t>(place);
    }
  }
  KOKKOS_FUNCTION std::int64_t row(std::uint32_t place) const {
    return static_cast<std::int64_t>(slots[place] >> position_bits);
  }
  KOKKOS_FUNCTION std::int64_t winner(std::uint32_t place) const {
    return static_cast<std::int64_t>(slots[place] & ((slot{1} << position_bits) - 1));
  }
};

/// One thread per slot.
struct clear_slots {
  winner_table::slot* slots;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { slots[i] = winner_table::empty; }
};

/// slot_of[p] = the slot that position p competed for, or `none` if it has no row. Fills the report as
/// resolve_indices does. One thread per position.
template <class Atomics, class Index, class Bounds, bool Last>
struct claim_slots {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  index_rows<Index, Bounds> source;
  winner_table table;
  std::uint32_t* slot_of;

  KOKKOS_FUNCTION void operator()(std::int64_t p) const {
    const std::int64_t row = source.row(p, true);
    slot_of[p] = row < 0 ? none : table.template claim<Atomics, Last>(row, p);
  }
};

/// Position p goes to its row if it has won it: a scatter, written as a gather from the batch.
struct winning_positions {
  winner_table table;
  const std::uint32_t* slot_of = nullptr;
  const ferry::detail::index_report* findings = nullptr;  ///< null: indices are not checked

  KOKKOS_FUNCTION std::int64_t row(std::int64_t p, bool) const {
    const std::uint32_t place = slot_of[p];
    if (place == ~std::uint32_t{0} || (findings != nullptr && findings->out_of_range != 0)) return -1;
    return table.winner(place) == p ? p : -1;
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t p) const { return table.row(slot_of[p]); }
};

}  // namespace ferry::kernels
