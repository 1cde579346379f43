// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace ferry::kernels {

/// Which slots move_slots moves, and where to.
enum class slot_move {
  leaving_to_host,    ///< changed slots that get another row next
  rewritten_to_host,  ///< of these, slots that verbs changed after leaving_to_host had written them
  changed_to_host,    ///< all changed slots
  entering_to_slot,   ///< slots that get another row next
  stale_to_slot,      ///< of these, slots whose next row verbs changed in host memory after it was read
  held_to_slot        ///< all slots that hold a row
};

/// Moves rows between slots and host memory, as opaque units. Neighbouring threads hold neighbouring units of
/// one row, and stride over the slots: few threads saturate the link, and leave the device to other kernels.
template <class Unit>
struct move_slots {
  detail::slot_book book;
  Unit* cold;
  Unit* hot;
  std::int64_t stride;  ///< of both, in units
  detail::fast_divisor units;
  std::int64_t slots;
  std::int64_t threads;
  slot_move move;

  /// True if the move concerns slots that get another row next: book.moving lists them.
  KOKKOS_FORCEINLINE_FUNCTION static bool moves_list(slot_move move) {
    return move != slot_move::changed_to_host && move != slot_move::held_to_slot;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    const bool by_list = moves_list(move);
    const std::int64_t end =
        (by_list ? static_cast<std::int64_t>(*book.moving_count) : slots) * units.divisor();
    for (std::int64_t i = thread; i < end; i += threads) {
      const std::int64_t item = units.quotient(i);
      one(by_list ? book.moving[item] : item, i - item * units.divisor());
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION void one(std::int64_t slot, std::int64_t offset) const {
    const std::int64_t current_row = book.current_rows[slot] - 1, next_row = book.next_rows[slot] - 1;
    switch (move) {
      case slot_move::leaving_to_host:
        if (current_row < 0 || current_row == next_row || book.changed[slot] == 0) return;
        break;
      case slot_move::rewritten_to_host:
        if (current_row < 0 || current_row == next_row || book.changed[slot] != detail::slot_dirty_again)
          return;
        break;
      case slot_move::changed_to_host:
        if (current_row < 0 || book.changed[slot] == 0) return;
        break;
      case slot_move::entering_to_slot:
        if (next_row >= 0 && current_row != next_row)
          hot[slot * stride + offset] = cold[next_row * stride + offset];
        return;
      case slot_move::stale_to_slot:
        if (next_row >= 0 && current_row != next_row && book.stale[slot] != 0)
          hot[slot * stride + offset] = cold[next_row * stride + offset];
        return;
      case slot_move::held_to_slot:
        if (current_row >= 0) hot[slot * stride + offset] = cold[current_row * stride + offset];
        return;
    }
    cold[current_row * stride + offset] = hot[slot * stride + offset];
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

template <class Unit, class Exec>
void launch_move(const Exec& exec, const std::string& label, const cache_memory& memory,
                 const cached_array& array, kernels::slot_move move) {
  constexpr auto unit = static_cast<std::int64_t>(sizeof(Unit));
  constexpr std::int64_t few = std::int64_t{1} << 15, many = std::int64_t{1} << 20;
  using kernel = kernels::move_slots<Unit>;
  const std::int64_t units = array.row_bytes / unit;
  const std::int64_t threads = std::min(memory.slots * units, kernel::moves_list(move) ? few : many);
  launch(exec, label, threads,
         kernel{memory.book, reinterpret_cast<Unit*>(array.cold), reinterpret_cast<Unit*>(array.hot),
                array.stride / unit, fast_divisor(units), memory.slots, threads, move});
}

/// Moves the rows of one array, in the widest units that its alignment allows.
template <class Exec>
void move_slots(const Exec& exec, const std::string& label, const cache_memory& memory,
                const cached_array& array, kernels::slot_move move) {
  if (array.row_bytes == 0) return;
  const std::uintptr_t alignment = array.cold | array.hot | static_cast<std::uintptr_t>(array.stride) |
                                   static_cast<std::uintptr_t>(array.row_bytes);
  if (alignment % 16 == 0)
    launch_move<kernels::opaque16>(exec, label, memory, array, move);
  else if (alignment % 4 == 0)
    launch_move<kernels::opaque<4>>(exec, label, memory, array, move);
  else
    launch_move<kernels::opaque<1>>(exec, label, memory, array, move);
}

/// Moves the rows of all arrays.
template <class Exec>
void move_slots(const Exec& exec, const std::string& label, const row_cache& cache, kernels::slot_move move) {
  for (const cached_array& array : cache.arrays) move_slots(exec, label, cache.memory, array, move);
}

}  // namespace ferry::detail
