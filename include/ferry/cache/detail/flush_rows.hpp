// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <memory>

/// The work of verbs on a row cache before and after their own kernels.
namespace ferry::detail {

/// The later work of this call reads and writes slots; `host`: also all rows in host memory.
template <ExecutionSpace Exec>
void use_slots(launch_context<Exec>& call, const row_cache& cache, bool host);

/// Gives the slots the rows in `next_rows`, at once.
template <ExecutionSpace Exec>
void exchange_now(launch_context<Exec>& call, row_cache& cache);

/// Writes all changes to host memory. The cached rows stay. No exchange is under way afterwards.
template <ExecutionSpace Exec>
void flush_rows(launch_context<Exec>& call, row_cache& cache);

/// Reads all cached rows from host memory again.
template <ExecutionSpace Exec>
void reload_rows(launch_context<Exec>& call, row_cache& cache);

/// Begins a verb on rows: a part of an exchange comes first if one is due. `plan`: that of the batch, or
/// null. Returns whether the batch is to be counted.
template <ExecutionSpace Exec>
bool begin_batch(launch_context<Exec>& call, row_cache& cache, const std::shared_ptr<plan_storage>& plan,
                 bool writes);

/// add_backing_array for an array that is not cached yet; `array` describes it.
template <ExecutionSpace Exec>
void add_cached_array(launch_context<Exec>& call, row_cache& cache, cached_array&& entry,
                      const array_note& array, access_tracker& accesses);

/// Caches an array with a row per row of the table, too, if it is not cached yet: its cached rows get memory
/// and are loaded. Throws bad_alloc or budget_exceeded before it changes anything.
template <class Exec, class T, class Space>
void add_backing_array(launch_context<Exec>& call, row_cache& cache, const array_ref<T, Space>& array) {
  if (cache.find(reinterpret_cast<std::uintptr_t>(array.data), array.accesses) >= 0) return;
  add_cached_array(call, cache, cached_array::of(array, array.width() * static_cast<std::int64_t>(sizeof(T))),
                   array.note(), *array.accesses);
}

}  // namespace ferry::detail
