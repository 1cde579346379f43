// SPDX-License-Identifier: Apache-2.0
#include <ferry/cache/detail/row_cache.hpp>

#include "../../backends/enabled.hpp"
#include "exchange_rows.hpp"
#include "move_slots.hpp"

#include <ferry/error.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <string>
#include <utility>

namespace ferry::detail {

/// Writes all changes to host memory. The cached rows stay. No exchange is under way afterwards.
template <ExecutionSpace Exec>
void flush_rows(launch_context<Exec>& call, row_cache& cache) {
  end_exchange(call, cache);
  use_slots(call, cache, true);
  if (!cache.changed && !cache.captured) return;
  const std::string& label = call.label("cached", "flush");
  move_slots(call.exec(), label, cache, kernels::slot_move::changed_to_host);
  launch(call.exec(), label, cache.memory.slots, kernels::forget_changes{cache.memory.book.changed});
  cache.changed = false;
}

/// Reads all cached rows from host memory again.
template <ExecutionSpace Exec>
void reload_rows(launch_context<Exec>& call, row_cache& cache) {
  end_exchange(call, cache);
  use_slots(call, cache, true);
  const std::string& label = call.label("cached", "reload");
  if (cache.stage != nullptr)
    cache.stage(&call, cache, true);
  else
    move_slots(call.exec(), label, cache, kernels::slot_move::held_to_slot);
  launch(call.exec(), label, cache.memory.slots, kernels::forget_changes{cache.memory.book.changed});
  cache.changed = false;
}

/// Begins a verb on rows: a part of an exchange comes first if one is due. `plan`: that of the batch, or
/// null. Returns whether the batch is to be counted.
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
  if (cache.exchange.part != exchange_part::none && cache.batches >= cache.exchange.due)
    end_part(call, cache);
  if (cache.batches >= cache.due) refresh_rows(call, cache);
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
  end_exchange(call, cache);
  use_slots(call, cache, true);  // an instance of another device is refused before anything changes
  if (!accesses.attach_cache(label))
    throw invalid_argument("ferry::" + std::string(call.verb()) + ": " + array.note().describe() +
                           " is a backing array of another cached_table");
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
  template void exchange_now(launch_context<EXEC>&, row_cache&);                                            \
  template void flush_rows(launch_context<EXEC>&, row_cache&);                                              \
  template void reload_rows(launch_context<EXEC>&, row_cache&);                                             \
  template bool begin_batch(launch_context<EXEC>&, row_cache&, const std::shared_ptr<plan_storage>&, bool); \
  template void add_backing_array(launch_context<EXEC>&, row_cache&, const untyped_array&);
FERRY_FOR_SPACES_OF_DEVICE(FERRY_CACHES_OF)
#undef FERRY_CACHES_OF

}  // namespace ferry::detail
