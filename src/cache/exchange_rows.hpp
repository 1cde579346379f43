// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/error.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include "choose_rows.hpp"
#include "move_slots.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>

/// An exchange of rows. Between two batches, on the instance of a verb, the rows are chosen. Then, on an
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
struct clear_moving {
  std::uint64_t* count;
  KOKKOS_FUNCTION void operator()(std::int64_t) const { *count = 0; }
};

/// Marks changed slots as dirty, so that those that verbs change from now on stand out as dirty again. One
/// thread per slot.
struct age_changes {
  std::uint8_t* changed;
  KOKKOS_FUNCTION void operator()(std::int64_t slot) const {
    if (changed[slot] != 0) changed[slot] = detail::slot_dirty;
  }
};
/// Marks slots as equal to host memory; one thread per slot.
struct forget_changes {
  std::uint8_t* changed;
  KOKKOS_FUNCTION void operator()(std::int64_t slot) const { changed[slot] = 0; }
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

/// Times the work of an exchange between two kernels of one instance.
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

/// Enqueues work() on an instance, and adds the time that it takes to that of the exchanges.
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
    throw invalid_argument(std::string("ferry::") + call.verb() + ": the cached rows of '" + cache.label +
                           "' lie on device " + std::to_string(device) + ", but the instance is of device " +
                           std::to_string(call.device()) + "; give the verb an instance of that device");
  call.writes_to(tracked(cache.accesses()));
  if (!host) return;
  for (const cached_array& array : cache.arrays)
    if (auto alive = array.accesses.lock()) call.writes_to(tracked(std::move(alive)));
}

/// Takes an instance for the exchange if it has none. False if Kokkos has no memory for one.
template <class Exec>
bool acquire_exchange_stream([[maybe_unused]] launch_context<Exec>& call, [[maybe_unused]] row_cache& cache) {
  if constexpr (!is_host_exec<Exec>) {
    using backend = execution_backend<Exec>;
    try {
      const typename backend::capture_pause pause(true);  // an instance allocates
      if (cache.exchange.stream == nullptr)
        cache.exchange.stream = engine::get(call.exec())->side_stream(call.exec());
    } catch (const std::exception&) {
      return false;
    }
  }
  return true;
}

/// Enqueues work(instance) on the instance of the exchange, after all work of this call so far. A host works
/// on its own instance.
template <class Exec, class Work>
void run_on_exchange_stream(launch_context<Exec>& call, row_cache& cache, const Work& work) {
  using backend = execution_backend<Exec>;
  if constexpr (is_host_exec<Exec>) {
    work(call.exec());
  } else {
    auto& exchange = cache.exchange;
    const Exec& side = *static_cast<const Exec*>(exchange.stream.get());
    auto completion = call.event_to_record();
    if (const event_handle before = call.mark(); before != nullptr) backend::wait_for(side, *before);
    work(side);
    backend::record_at(side, *completion);
    exchange.completion = std::move(completion);
  }
}

/// Orders this call after the part of the exchange that is under way.
template <class Exec>
void wait_for_exchange(launch_context<Exec>& call, row_cache& cache) {
  if (cache.exchange.completion == nullptr) return;
  execution_backend<Exec>::wait_for(call.exec(), *cache.exchange.completion);
}

/// Writes leaving rows to host memory, `leaving` says which of them, and frees their slots.
template <class Exec>
void free_slots(launch_context<Exec>& call, row_cache& cache, const std::string& label,
                kernels::slot_move leaving) {
  if (cache.stage == nullptr) move_slots(call.exec(), label, cache, leaving);
  launch(call.exec(), label, cache.memory.slots, kernels::free_slots{cache.memory.book});
}

/// Enters the rows that the free slots have got into the directory.
template <class Exec>
void insert_rows(launch_context<Exec>& call, row_cache& cache, const std::string& label) {
  launch(call.exec(), label, cache.memory.slots, kernels::insert_rows{cache.memory.book});
}

/// Lists the slots whose rows in `next_rows` are new.
template <class Exec>
void list_moving(launch_context<Exec>& call, const row_cache& cache, const std::string& label) {
  launch(call.exec(), label, 1, kernels::clear_moving{cache.memory.book.moving_count});
  launch(call.exec(), label, cache.memory.slots, kernels::list_moving{cache.memory.book});
}

/// Gives the slots the rows in `next_rows`, at once.
template <ExecutionSpace Exec>
void exchange_now(launch_context<Exec>& call, row_cache& cache) {
  const std::string& label = call.label("cached", "exchange");
  list_moving(call, cache, label);
  free_slots(call, cache, label, kernels::slot_move::leaving_to_host);
  if (cache.stage != nullptr)
    cache.stage(&call, cache, false);
  else
    move_slots(call.exec(), label, cache, kernels::slot_move::entering_to_slot);
  insert_rows(call, cache, label);
}

/// Moves slots on the instance of the exchange, timed. A host does it at once; `caller_times` if its time is
/// part of one that the caller takes.
template <class Exec>
void move_on_exchange_stream(launch_context<Exec>& call, row_cache& cache, const std::string& label,
                             kernels::slot_move move, bool caller_times) {
  run_on_exchange_stream(call, cache, [&](const Exec& side) {
    if (is_host_exec<Exec> && caller_times)
      move_slots(side, label, cache, move);
    else
      timed(side, label, cache, true, [&] { move_slots(side, label, cache, move); });
  });
}

/// Begins to load rows into free slots.
template <class Exec>
void load_on_exchange_stream(launch_context<Exec>& call, row_cache& cache, bool caller_times) {
  move_on_exchange_stream(call, cache, call.label("cached", "load"), kernels::slot_move::entering_to_slot,
                          caller_times);
  cache.exchange.part = exchange_part::entering;
}

/// Ends the part of the exchange that is under way, and begins the next one.
template <class Exec>
void end_part(launch_context<Exec>& call, row_cache& cache) {
  auto& exchange = cache.exchange;
  const std::string& label = call.label("cached", "exchange");
  use_slots(call, cache, true);
  wait_for_exchange(call, cache);
  if (exchange.part == exchange_part::leaving) {
    timed(call.exec(), label, cache, false,
          [&] { free_slots(call, cache, label, kernels::slot_move::late_to_host); });
    load_on_exchange_stream(call, cache, false);
    exchange.due += exchange.lag;
  } else {
    timed(call.exec(), label, cache, false, [&] {
      move_slots(call.exec(), label, cache, kernels::slot_move::stale_to_slot);
      insert_rows(call, cache, label);
    });
    exchange = {};
  }
}

/// Ends the exchange that is under way: no part of it is left when later work of this call begins.
template <class Exec>
void end_exchange(launch_context<Exec>& call, row_cache& cache) {
  while (cache.exchange.part != exchange_part::none) end_part(call, cache);
}

/// Chooses the rows used most and begins to exchange the cached ones for them; `next`: the batches up to the
/// next exchange. Does it at once if that comes soon, or if host threads have to bring the rows.
template <class Exec>
void begin_exchange(launch_context<Exec>& call, row_cache& cache, std::int64_t next) {
  choose_rows(call, cache);
  auto& exchange = cache.exchange;
  if (next < row_cache::parts_from || cache.stage != nullptr || !acquire_exchange_stream(call, cache)) {
    exchange_now(call, cache);
    return;
  }
  const std::string& label = call.label("cached", "exchange");
  exchange.lag = std::max<std::int64_t>(1, next / 8);
  exchange.due = cache.batches + exchange.lag;
  list_moving(call, cache, label);
  if (cache.changed || cache.captured) {
    launch(call.exec(), label, cache.memory.slots, kernels::age_changes{cache.memory.book.changed});
    move_on_exchange_stream(call, cache, label, kernels::slot_move::leaving_to_host, true);
    exchange.part = exchange_part::leaving;
  } else {
    free_slots(call, cache, label, kernels::slot_move::late_to_host);
    load_on_exchange_stream(call, cache, true);
  }
}

/// An exchange, and with a full interval the halving of the counts.
template <class Exec>
void refresh_rows(launch_context<Exec>& call, row_cache& cache) {
  end_exchange(call, cache);
  use_slots(call, cache, true);
  const std::int64_t next = std::min(cache.interval, cache.batches);
  timed(call.exec(), call.label("cached", "exchange"), cache, false, [&] {
    begin_exchange(call, cache, next);
    if (next == cache.interval)
      launch(call.exec(), call.label("cached", "halve"), cache.rows,
             kernels::halve_counts{cache.counts.data()});
  });
  cache.due = cache.batches + next;
  ++cache.refreshes;
}

}  // namespace ferry::detail
