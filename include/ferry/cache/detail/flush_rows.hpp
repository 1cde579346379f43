// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/exchange_rows.hpp>
#include <ferry/cache/detail/move_slots.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/error.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

/// What verbs do to a row cache before or after their own kernels.
namespace ferry::detail {

/// Writes all changes to host memory. The cached rows stay. No exchange is under way afterwards.
template <class Exec>
void flush_rows(launch_context<Exec>& of, row_cache& cache) {
  end_exchange(of, cache);
  use_slots(of, cache, true);
  if (!cache.changed && !cache.captured) return;
  const std::string& label = of.label("cached", "flush");
  move_slots(of.exec(), label, cache, kernels::slot_move::changed_to_host);
  launch(of.exec(), label, cache.memory.slots, kernels::forget_changes{cache.memory.book.changed});
  cache.changed = false;
}

/// Reads all cached rows from host memory again.
template <class Exec>
void reload_rows(launch_context<Exec>& of, row_cache& cache) {
  end_exchange(of, cache);
  use_slots(of, cache, true);
  const std::string& label = of.label("cached", "reload");
  if (cache.stage != nullptr)
    cache.stage(&of, cache, true);
  else
    move_slots(of.exec(), label, cache, kernels::slot_move::held_to_slot);
  launch(of.exec(), label, cache.memory.slots, kernels::forget_changes{cache.memory.book.changed});
  cache.changed = false;
}

/// Begins a verb on rows: a part of an exchange comes first where one is due. `plan`: that of the batch, or
/// null. Returns whether the batch is to be counted.
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
  if (cache.exchange.part != exchange_part::none && cache.batches >= cache.exchange.due) end_part(of, cache);
  if (cache.batches >= cache.due) refresh_rows(of, cache);
  ++cache.batches;
  return true;
}

/// Caches an array with a row per row of the table, too, if it is not cached yet: its cached rows get memory
/// and are loaded. Throws bad_alloc or budget_exceeded before it changes anything.
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
  end_exchange(of, cache);
  use_slots(of, cache, true);  // an instance of another device is refused before anything changes
  if (!array.accesses->attach_cache(std::string(array.label)))
    throw invalid_argument("ferry::" + std::string(of.verb()) + ": " + array.describe() +
                           " is a backing array of another cached_table");
  cache.arrays.push_back(std::move(made));
  try {
    move_slots(of.exec(), of.label("cached", "load"), cache.memory, cache.arrays.back(),
               kernels::slot_move::held_to_slot);
  } catch (...) {
    cache.arrays.pop_back();
    array.accesses->detach_cache();
    throw;
  }
}

}  // namespace ferry::detail
