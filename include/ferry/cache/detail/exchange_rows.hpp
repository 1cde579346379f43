// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/choose_rows.hpp>
#include <ferry/cache/detail/choose_ways.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::kernels {

/// Which slots move_slots moves, and where to.
enum class slot_move {
  leaving_to_host,   ///< changed ones that are about to get another row
  changed_to_host,   ///< all changed ones
  entering_to_slot,  ///< those that are about to get another row
  held_to_slot       ///< all that hold a row
};

/// Moves rows between slots and host memory, as opaque units. One thread per (slot, unit), row-major: the
/// threads of a warp hold neighbouring units of one row.
template <class Unit>
struct move_slots {
  const std::int64_t* held;
  const std::int64_t* wanted;
  const std::uint8_t* changed;
  Unit* cold;
  Unit* hot;
  std::int64_t stride;  ///< of both, in units
  detail::fast_divisor units;
  slot_move move;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t slot = units.quotient(i);
    const std::int64_t at = i - slot * units.divisor();
    const std::int64_t row = held[slot] - 1;
    switch (move) {
      case slot_move::leaving_to_host:
        if (row < 0 || changed[slot] == 0 || wanted[slot] == row + 1) return;
        break;
      case slot_move::changed_to_host:
        if (row < 0 || changed[slot] == 0) return;
        break;
      case slot_move::entering_to_slot:
        if (wanted[slot] != 0 && wanted[slot] != row + 1)
          hot[slot * stride + at] = cold[(wanted[slot] - 1) * stride + at];
        return;
      case slot_move::held_to_slot:
        if (row >= 0) hot[slot * stride + at] = cold[row * stride + at];
        return;
    }
    cold[row * stride + at] = hot[slot * stride + at];
  }
};

/// Takes leaving rows out of the directory; one thread per slot.
template <class Directory>
struct erase_rows {
  Directory directory;
  const std::int64_t* held;
  const std::int64_t* wanted;

  KOKKOS_FUNCTION void operator()(std::int64_t slot) const {
    if (held[slot] != 0 && wanted[slot] != held[slot]) directory.erase(held[slot] - 1, slot);
  }
};

/// Puts entering rows into the directory, after erase_rows; one thread per slot.
template <class Directory>
struct insert_rows {
  Directory directory;
  std::int64_t* held;
  const std::int64_t* wanted;
  std::uint8_t* changed;
  std::uint64_t* loaded;

  KOKKOS_FUNCTION void operator()(std::int64_t slot) const {
    if (wanted[slot] == held[slot]) return;
    if (wanted[slot] != 0) {
      directory.insert(wanted[slot] - 1, slot);
      Kokkos::atomic_add(loaded, std::uint64_t{1});
    }
    held[slot] = wanted[slot];
    changed[slot] = 0;
  }
};

struct forget_changes {
  std::uint8_t* changed;
  KOKKOS_FUNCTION void operator()(std::int64_t slot) const { changed[slot] = 0; }
};

struct halve_counts {
  std::uint32_t* counts;
  KOKKOS_FUNCTION void operator()(std::int64_t row) const { counts[row] /= 2; }
};

}  // namespace ferry::kernels

namespace ferry::detail {

template <class Unit, class Exec>
void launch_move(const Exec& exec, const std::string& label, const cache_memory& memory,
                 const cached_array& array, kernels::slot_move move) {
  constexpr auto unit = static_cast<std::int64_t>(sizeof(Unit));
  const std::int64_t units = array.row_bytes / unit;
  launch(exec, label, memory.slots * units,
         kernels::move_slots<Unit>{memory.book.held, memory.book.wanted, memory.book.changed,
                                   reinterpret_cast<Unit*>(array.cold), reinterpret_cast<Unit*>(array.hot),
                                   array.stride / unit, fast_divisor(units), move});
}

/// Moves the rows of one array, in the widest units that its alignment allows.
template <class Exec>
void move_slots(launch_context<Exec>& of, const std::string& label, const cache_memory& memory,
                const cached_array& array, kernels::slot_move move) {
  if (array.row_bytes == 0) return;
  const std::uintptr_t all = array.cold | array.hot | static_cast<std::uintptr_t>(array.stride) |
                             static_cast<std::uintptr_t>(array.row_bytes);
  if (all % 16 == 0)
    launch_move<kernels::opaque16>(of.exec(), label, memory, array, move);
  else if (all % 4 == 0)
    launch_move<kernels::opaque<4>>(of.exec(), label, memory, array, move);
  else
    launch_move<kernels::opaque<1>>(of.exec(), label, memory, array, move);
}

/// The later work of this call reads and writes slots; `host`: also all rows in host memory.
template <class Exec>
void use_slots(launch_context<Exec>& of, const row_cache& cache, bool host) {
  of.writes_to(tracked(cache.accesses()));
  if (!host) return;
  for (const cached_array& each : cache.arrays)
    if (auto alive = each.accesses.lock()) of.writes_to(tracked(std::move(alive)));
}

/// Gives the slots the rows in `wanted`.
template <class Exec>
void exchange_rows(launch_context<Exec>& of, const row_cache& cache) {
  const Exec& exec = of.exec();
  const cache_memory& memory = cache.memory;
  const slot_book& book = memory.book;
  const std::string& label = of.label("cached", "exchange");
  for (const cached_array& each : cache.arrays)
    move_slots(of, label, memory, each, kernels::slot_move::leaving_to_host);
  cache.with_directory([&](const auto& directory) {
    using kind = std::remove_cvref_t<decltype(directory)>;
    launch(exec, label, memory.slots, kernels::erase_rows<kind>{directory, book.held, book.wanted});
    for (const cached_array& each : cache.arrays)
      move_slots(of, label, memory, each, kernels::slot_move::entering_to_slot);
    launch(exec, label, memory.slots,
           kernels::insert_rows<kind>{directory, book.held, book.wanted, book.changed,
                                      book.tallies + std::size_t{2} * tally_room});
  });
}

/// Exchanges the cached rows for those used most.
template <class Exec>
void refresh_rows(launch_context<Exec>& of, row_cache& cache) {
  use_slots(of, cache, true);
  if (cache.memory.sets != 0)
    choose_ways(of, cache);
  else
    choose_rows(of, cache);
  exchange_rows(of, cache);
  const std::int64_t next = std::min(cache.interval, cache.batches);
  if (next == cache.interval)
    launch(of.exec(), of.label("cached", "halve"), cache.rows, kernels::halve_counts{cache.counts.data()});
  cache.due = cache.batches + next;
  ++cache.refreshes;
}

/// Writes all changes to host memory. The cached rows stay.
template <class Exec>
void flush_rows(launch_context<Exec>& of, row_cache& cache) {
  use_slots(of, cache, true);
  if (!cache.changed && !cache.captured) return;
  const std::string& label = of.label("cached", "flush");
  for (const cached_array& each : cache.arrays)
    move_slots(of, label, cache.memory, each, kernels::slot_move::changed_to_host);
  launch(of.exec(), label, cache.memory.slots, kernels::forget_changes{cache.memory.book.changed});
  cache.changed = false;
}

/// Reads all cached rows from host memory again.
template <class Exec>
void reload_rows(launch_context<Exec>& of, row_cache& cache) {
  use_slots(of, cache, true);
  const std::string& label = of.label("cached", "reload");
  for (const cached_array& each : cache.arrays)
    move_slots(of, label, cache.memory, each, kernels::slot_move::held_to_slot);
  launch(of.exec(), label, cache.memory.slots, kernels::forget_changes{cache.memory.book.changed});
  cache.changed = false;
}

/// Begins a verb on rows: an exchange comes first where one is due. `plan`: that of the batch, or null.
/// Returns whether the batch is to be counted.
template <class Exec>
bool begin_batch(launch_context<Exec>& of, row_cache& cache, const std::shared_ptr<plan_storage>& plan,
                 bool writes) {
  use_slots(of, cache, false);
  if (writes) {
    cache.changed = true;
    cache.captured = cache.captured || of.capturing();
  }
  if (cache.interval == 0) return false;
  if (of.capturing()) return true;
  if (!cache.begins_batch(plan)) return false;
  if (cache.batches >= cache.due) refresh_rows(of, cache);
  ++cache.batches;
  return true;
}

/// Caches an array with a row per row of the table, too, if it is not cached yet: its cached rows get
/// memory and are loaded. Throws bad_alloc or budget_exceeded before it changes anything.
template <class Exec, class T, class Space>
void add_backing_array(launch_context<Exec>& of, row_cache& cache, const array_ref<T, Space>& array) {
  const auto cold = reinterpret_cast<std::uintptr_t>(array.data);
  if (cache.find(cold, array.accesses) >= 0) return;
  of.refuse_capture(
      "but the rows of this state are not in device memory yet, and each launch would load them again; step "
      "with it once before the capture");
  cached_array made = cached_array::of(array, array.width() * static_cast<std::int64_t>(sizeof(T)));
  cache.arrays.reserve(cache.arrays.size() + 1);
  made.allocate(std::string(array.label), cache.memory.slots);
  if (!array.accesses->attach_cache(std::string(array.label)))
    throw invalid_argument("ferry::" + std::string(of.verb()) + ": " + array.describe() +
                           " is a backing array of another cached_table");
  cache.arrays.push_back(std::move(made));
  use_slots(of, cache, true);
  move_slots(of, of.label("cached", "load"), cache.memory, cache.arrays.back(),
             kernels::slot_move::held_to_slot);
}

}  // namespace ferry::detail
