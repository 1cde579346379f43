// SPDX-License-Identifier: Apache-2.0

#include <ferry/cache/detail/row_cache.hpp>

#include "../../backends/enabled.hpp"
#include "choose_rows.hpp"

#include <ferry/error.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

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

/// A refresh of rows. Between two batches, on the instance of a verb, the rows are chosen. Then, on an
/// instance of its own, while later verbs use the cache as it was:
///   1. changed rows that leave are written to host memory. Between two batches they leave the directory,
///      after those that verbs have changed once more meanwhile are written again;
///   2. rows that enter are loaded into the free slots. Between two batches they enter the directory, after
///      those that verbs have changed in host memory meanwhile are loaded again.
/// Each part takes a fixed number of batches, so the rows that are cached in a batch do not depend on the
/// speed of the device. Verbs wait for a part in the order of their instance, not on the host.
namespace ferry::kernels {

/// Lists the slots that are about to get another row, in any order; one thread per slot.
struct list_moving {
  detail::slot_book book;

  KOKKOS_FUNCTION void operator()(std::int64_t slot) const {
    if (book.current_rows[slot] == book.next_rows[slot]) return;
    const std::uint64_t entry = Kokkos::atomic_fetch_add(book.moving_count, std::uint64_t{1});
    book.moving[entry] = slot;
  }
};

/// Marks changed slots as dirty, so that those that verbs change from now on stand out as dirty again. One
/// thread per slot.
struct age_changes {
  std::uint8_t* changed;
  KOKKOS_FUNCTION void operator()(std::int64_t slot) const {
    if (changed[slot] != 0) changed[slot] = detail::slot_dirty;
  }
};

/// Takes leaving rows out of the directory and announces those that enter; one thread per slot.
struct free_slots {
  detail::slot_book book;

  KOKKOS_FUNCTION void operator()(std::int64_t slot) const {
    if (book.next_rows[slot] == book.current_rows[slot]) return;
    if (book.current_rows[slot] != 0) book.directory.erase(book.current_rows[slot] - 1);
    if (book.next_rows[slot] != 0) book.directory.announce(book.next_rows[slot] - 1, slot);
    book.current_rows[slot] = 0;
    book.changed[slot] = 0;
    book.stale[slot] = 0;
  }
};

/// Puts loaded rows into the directory; one thread per slot.
struct insert_rows {
  detail::slot_book book;

  KOKKOS_FUNCTION void operator()(std::int64_t slot) const {
    if (book.next_rows[slot] == book.current_rows[slot]) return;
    book.directory.insert(book.next_rows[slot] - 1, slot);
    Kokkos::atomic_add(book.tallies + std::int64_t{2} * detail::tally_room, std::uint64_t{1});
    book.current_rows[slot] = book.next_rows[slot];
  }
};

struct halve_counts {
  std::uint32_t* counts;
  KOKKOS_FUNCTION void operator()(std::int64_t row) const { counts[row] /= 2; }
};

/// Times the work of a refresh between two kernels of one instance.
template <class Backend>
struct begin_time {
  std::uint64_t* begun;
  KOKKOS_FUNCTION void operator()(std::int64_t) const { *begun = Backend::clock_in_kernel(); }
};
template <class Backend>
struct add_time {
  const std::uint64_t* begun;
  std::uint64_t* sum;
  KOKKOS_FUNCTION void operator()(std::int64_t) const {
    const std::uint64_t now = Backend::clock_in_kernel();
    if (now > *begun) Kokkos::atomic_add(sum, now - *begun);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Enqueues work() on an instance, and adds the time that it takes to that of the refreshes.
template <class Exec, class Work>
void timed(const Exec& exec, const std::string& label, const row_cache& cache, bool on_side_instance,
           const Work& work) {
  using backend = execution_backend<Exec>;
  std::uint64_t* const sum = cache.memory.book.tallies + std::int64_t{2} * tally_room + 1;
  std::uint64_t* const begun = sum + (on_side_instance ? 2 : 1);
  launch(exec, label, 1, kernels::begin_time<backend>{begun});
  work();
  launch(exec, label, 1, kernels::add_time<backend>{begun, sum});
}

/// Declares that later work of this call reads and writes slots and, with `host`, all rows in host memory.
template <ExecutionSpace Exec>
void use_slots(launch_context<Exec>& call, const row_cache& cache, bool host) {
  if (const int device = cache.accesses()->device();
      !is_host_exec<Exec> && device >= 0 && device != call.device())
    throw invalid_argument(joined("ferry::", call.verb(), ": the cached rows of '", cache.label,
                                  "' lie on device ", device, ", but the instance is of device ",
                                  call.device(), "; give the verb an instance of that device"));
  call.writes_to(tracked(cache.accesses()));
  if (!host) return;
  for (const cached_array& array : cache.arrays)
    if (auto alive = array.accesses.lock()) call.writes_to(tracked(std::move(alive)));
}

/// Takes an instance for the refresh if it has none. False if Kokkos has no memory for one.
template <class Exec>
bool acquire_refresh_stream([[maybe_unused]] launch_context<Exec>& call, [[maybe_unused]] row_cache& cache) {
  if constexpr (!is_host_exec<Exec>) {
    using backend = execution_backend<Exec>;
    try {
      const typename backend::capture_pause pause(true);  // an instance allocates
      if (cache.refresh.stream == nullptr)
        cache.refresh.stream = engine::get(call.exec())->side_stream(call.exec());
    } catch (const std::exception&) {
      return false;
    }
  }
  return true;
}

/// Writes leaving rows to host memory, `leaving` says which of them, and frees their slots.
template <class Exec>
void free_slots(launch_context<Exec>& call, row_cache& cache, const std::string& label,
                kernels::slot_move leaving) {
  if (cache.stage == nullptr) move_slots(call.exec(), label, cache, leaving);
  launch(call.exec(), label, cache.memory.slots, kernels::free_slots{cache.memory.book});
}

/// Lists the slots whose rows in `next_rows` are new.
template <class Exec>
void list_moving(launch_context<Exec>& call, const row_cache& cache, const std::string& label) {
  launch(call.exec(), label, 1, kernels::clear_numbers<std::uint64_t>{cache.memory.book.moving_count});
  launch(call.exec(), label, cache.memory.slots, kernels::list_moving{cache.memory.book});
}

/// Gives the slots the rows in `next_rows`, at once.
template <ExecutionSpace Exec>
void refresh_now(launch_context<Exec>& call, row_cache& cache) {
  const std::string& label = call.label("cached", "exchange");
  list_moving(call, cache, label);
  free_slots(call, cache, label, kernels::slot_move::leaving_to_host);
  if (cache.stage != nullptr)
    cache.stage(&call, cache, false);
  else
    move_slots(call.exec(), label, cache, kernels::slot_move::entering_to_slot);
  launch(call.exec(), label, cache.memory.slots, kernels::insert_rows{cache.memory.book});
}

/// Moves slots on the instance of the refresh, after all work of this call so far, and times it. A host moves
/// them at once, on its own instance; `caller_times` if its time is part of one that the caller takes.
template <class Exec>
void move_on_refresh_stream(launch_context<Exec>& call, row_cache& cache, const std::string& label,
                            kernels::slot_move move, bool caller_times) {
  const auto move_on = [&](const Exec& exec) {
    if (is_host_exec<Exec> && caller_times)
      move_slots(exec, label, cache, move);
    else
      timed(exec, label, cache, true, [&] { move_slots(exec, label, cache, move); });
  };
  if constexpr (is_host_exec<Exec>) {
    move_on(call.exec());
  } else {
    using backend = execution_backend<Exec>;
    const Exec& side = *static_cast<const Exec*>(cache.refresh.stream.get());
    auto completion = call.event_to_record();
    if (const event_handle before = call.mark(); before != nullptr) backend::wait_for(side, *before);
    move_on(side);
    backend::record_at(side, *completion);
    cache.refresh.completion = std::move(completion);
  }
}

/// Begins to load rows into free slots.
template <class Exec>
void load_on_refresh_stream(launch_context<Exec>& call, row_cache& cache, bool caller_times) {
  move_on_refresh_stream(call, cache, call.label("cached", "load"), kernels::slot_move::entering_to_slot,
                         caller_times);
  cache.refresh.part = refresh_part::entering;
}

/// Ends the part of the refresh that is under way, and begins the next one.
template <class Exec>
void end_part(launch_context<Exec>& call, row_cache& cache) {
  auto& refresh = cache.refresh;
  const std::string& label = call.label("cached", "exchange");
  use_slots(call, cache, true);
  if (refresh.completion != nullptr) execution_backend<Exec>::wait_for(call.exec(), *refresh.completion);
  if (refresh.part == refresh_part::leaving) {
    timed(call.exec(), label, cache, false,
          [&] { free_slots(call, cache, label, kernels::slot_move::rewritten_to_host); });
    load_on_refresh_stream(call, cache, false);
    refresh.due += refresh.lag;
  } else {
    timed(call.exec(), label, cache, false, [&] {
      move_slots(call.exec(), label, cache, kernels::slot_move::stale_to_slot);
      launch(call.exec(), label, cache.memory.slots, kernels::insert_rows{cache.memory.book});
    });
    refresh = {};
  }
}

/// Ends the refresh that is under way: no part of it is left when later work of this call begins.
template <class Exec>
void end_refresh(launch_context<Exec>& call, row_cache& cache) {
  while (cache.refresh.part != refresh_part::none) end_part(call, cache);
}

/// Chooses the rows used most and begins to load them in place of cached ones. Does it at once if the next time
/// comes soon, or if host threads have to bring the rows. Halves the counts after a full interval.
template <class Exec>
void begin_refresh(launch_context<Exec>& call, row_cache& cache) {
  end_refresh(call, cache);
  use_slots(call, cache, true);
  const std::int64_t interval = std::min(cache.interval, cache.batches);  // to the next time
  const std::string& label = call.label("cached", "exchange");
  timed(call.exec(), label, cache, false, [&] {
    auto& refresh = cache.refresh;
    choose_rows(call, cache);
    if (interval < row_cache::parts_from || cache.stage != nullptr || !acquire_refresh_stream(call, cache)) {
      refresh_now(call, cache);
    } else {
      refresh.lag = std::max<std::int64_t>(1, interval / 8);
      refresh.due = cache.batches + refresh.lag;
      list_moving(call, cache, label);
      if (cache.changed || cache.captured) {
        launch(call.exec(), label, cache.memory.slots, kernels::age_changes{cache.memory.book.changed});
        move_on_refresh_stream(call, cache, label, kernels::slot_move::leaving_to_host, true);
        refresh.part = refresh_part::leaving;
      } else {
        free_slots(call, cache, label, kernels::slot_move::rewritten_to_host);
        load_on_refresh_stream(call, cache, true);
      }
    }
    if (interval == cache.interval)
      launch(call.exec(), call.label("cached", "halve"), cache.rows,
             kernels::halve_counts{cache.counts.data()});
  });
  cache.due = cache.batches + interval;
  ++cache.refreshes;
}

template <ExecutionSpace Exec>
void flush_rows(launch_context<Exec>& call, row_cache& cache) {
  end_refresh(call, cache);
  use_slots(call, cache, true);
  if (!cache.changed && !cache.captured) return;
  const std::string& label = call.label("cached", "flush");
  move_slots(call.exec(), label, cache, kernels::slot_move::changed_to_host);
  launch(call.exec(), label, cache.memory.slots,
         kernels::clear_numbers<std::uint8_t>{cache.memory.book.changed});
  cache.changed = false;
}

template <ExecutionSpace Exec>
void reload_rows(launch_context<Exec>& call, row_cache& cache) {
  end_refresh(call, cache);
  use_slots(call, cache, true);
  const std::string& label = call.label("cached", "reload");
  if (cache.stage != nullptr)
    cache.stage(&call, cache, true);
  else
    move_slots(call.exec(), label, cache, kernels::slot_move::held_to_slot);
  launch(call.exec(), label, cache.memory.slots,
         kernels::clear_numbers<std::uint8_t>{cache.memory.book.changed});
  cache.changed = false;
}

template <ExecutionSpace Exec>
bool begin_batch(launch_context<Exec>& call, row_cache& cache, const std::shared_ptr<plan_storage>& plan,
                 bool writes) {
  use_slots(call, cache, false);
  if (writes) {
    cache.changed = true;
    cache.captured = cache.captured || call.capturing();
  }
  if (cache.interval == 0) return false;
  if (call.capturing()) return true;
  if (!cache.begins_batch(plan)) return false;
  if (cache.refresh.part != refresh_part::none && cache.batches >= cache.refresh.due) end_part(call, cache);
  if (cache.batches >= cache.due) begin_refresh(call, cache);
  ++cache.batches;
  return true;
}

template <ExecutionSpace Exec>
void add_backing_array(launch_context<Exec>& call, row_cache& cache, const untyped_array& array) {
  if (cache.find(array) != nullptr) return;
  access_tracker& accesses = *array.shape.accesses;
  cached_array entry(array, array.shape.width() * static_cast<std::int64_t>(array.element_bytes));
  call.refuse_capture(
      "but the rows of this state are not in device memory yet, and each launch would load them again; step "
      "with it once before the capture");
  cache.arrays.reserve(cache.arrays.size() + 1);
  const std::string label(array.shape.label);
  entry.allocate(label, cache.memory.slots);
  end_refresh(call, cache);
  use_slots(call, cache, true);  // an instance of another device is refused before anything changes
  if (!accesses.attach_cache(label))
    throw invalid_argument(joined("ferry::", call.verb(), ": ", array.note().describe(),
                                  " is a backing array of another cached_table"));
  cache.arrays.push_back(std::move(entry));
  try {
    move_slots(call.exec(), call.label("cached", "load"), cache.memory, cache.arrays.back(),
               kernels::slot_move::held_to_slot);
  } catch (...) {
    cache.arrays.pop_back();
    accesses.detach_cache();
    throw;
  }
}

#define FERRY_CACHES_OF(EXEC)                                                                               \
  template void use_slots(launch_context<EXEC>&, const row_cache&, bool);                                   \
  template void refresh_now(launch_context<EXEC>&, row_cache&);                                             \
  template void flush_rows(launch_context<EXEC>&, row_cache&);                                              \
  template void reload_rows(launch_context<EXEC>&, row_cache&);                                             \
  template bool begin_batch(launch_context<EXEC>&, row_cache&, const std::shared_ptr<plan_storage>&, bool); \
  template void add_backing_array(launch_context<EXEC>&, row_cache&, const untyped_array&);
FERRY_FOR_SPACES_OF_DEVICE(FERRY_CACHES_OF)
#undef FERRY_CACHES_OF

}  // namespace ferry::detail
