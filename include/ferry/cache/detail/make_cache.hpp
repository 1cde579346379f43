// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/cache/detail/stage_rows.hpp>
#include <ferry/cache/statistics.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/rows/init.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// The life of a row cache apart from verbs. Functions without an instance from the caller use the default
/// one.
namespace ferry::detail {

/// Clears the book of new memory, whose slots are to get `initial_rows`. Takes all memory that this needs.
void open_book(cache_memory& memory, const std::vector<std::int64_t>& initial_rows);

/// Loads the rows that open_book() has listed.
void fill_cache(row_cache& cache, const std::vector<std::int64_t>& initial_rows);

template <class T, class Space>
cache_memory memory_for(const array_ref<T, Space>& table, std::int64_t most) {
  return {std::string(table.label), table.rows(), table.size() == 0 ? 0 : most};
}

template <class Exec, class Policy>
void count_uses(row_cache& cache, const Policy& policy, std::int64_t slots) {
  if constexpr (Policy::counts_rows) {
    const std::int64_t interval = slots == 0 ? 0 : policy.interval();
    if (interval != 0 && cache.counts.rows() == 0) {
      tensor<std::uint32_t, device_space> counts(cache.label + "::counts", cache.rows);
      fill(Exec{}, make_ref(counts), std::uint32_t{0});
      counts.accesses()->record_untracked_use();
      cache.counts = std::move(counts);
    }
    cache.interval = interval;
  }
}

/// True if host threads bring the rows of the table, because kernels do not reach it. Throws invalid_argument
/// if neither can: host threads bring no codes, which the device decodes.
template <class Exec, bool Codes, class T, class Space>
bool is_staged(const array_ref<T, Space>& table) {
  if constexpr (!is_host_exec<Exec> && std::is_same_v<Space, pageable_space> && !Codes)
    return !execution_backend<Exec>::reaches_pageable(Exec{});
  require_direct_reach("cached_table", Exec{}, table);
  return false;
}

template <class T, class Space>
void require_tracked_rows(const array_ref<T, Space>& array) {
  if (array.accesses == nullptr)
    throw invalid_argument(joined("ferry::cached_table: ", array.describe(),
                                  " is an empty handle, or no ferry::tensor with a record of its accesses"));
  require_dense_rows("cached_table", array);
}

/// Attaches the cache of `label` to the arrays: to all, or to none.
template <class Array, class... More>
void attach_arrays(const std::string& label, const Array& array, const More&... more) {
  if (!array.accesses->attach_cache(label))
    throw invalid_argument(joined("ferry::cached_table: ", array.describe(), " has a cached_table already"));
  if constexpr (sizeof...(More) != 0) {
    try {
      attach_arrays(label, more...);
    } catch (...) {
      array.accesses->detach_cache();
      throw;
    }
  }
}

/// The cache of a table, with its first rows. `more`: other arrays with a row for each row of the table,
/// which are cached with it. Throws if kernels do not reach them.
template <bool Codes, class Exec = Kokkos::DefaultExecutionSpace, class T, class Space, class Policy,
          class... More>
std::unique_ptr<row_cache> make_cache(const array_ref<T, Space>& table, std::int64_t row_bytes,
                                      const Policy& policy, const More&... more) {
  require_kokkos("cached_table");
  const std::string label(table.label);
  require_tracked_rows(table);
  (require_tracked_rows(more), ...);
  (require_direct_reach("cached_table", Exec{}, more), ...);
  const bool staged = is_staged<Exec, Codes>(table);
  const auto initial_rows = policy.rows_from_start(table.rows());
  auto cache = std::make_unique<row_cache>();
  cache->label = label;
  cache->rows = table.rows();
  if (staged) cache->stage = &stage_rows<Exec>;
  cache->memory = memory_for(table, policy.most_rows(table.rows()));
  cache->table = table.accesses;
  cache->arrays.push_back(cached_array::of(table, row_bytes));
  (cache->arrays.push_back(cached_array::of(more, bytes_of_rows(more, 1))), ...);
  for (cached_array& array : cache->arrays) {
    array.allocate(label, cache->memory.slots);
    cache->row_bytes += array.row_bytes;
  }
  count_uses<Exec>(*cache, policy, cache->memory.slots);
  open_book(cache->memory, initial_rows);
  attach_arrays(label, table, more...);
  try {
    fill_cache(*cache, initial_rows);
  } catch (...) {
    table.accesses->detach_cache();
    (more.accesses->detach_cache(), ...);
    throw;
  }
  cache->hold(row_hold::readable);
  return cache;
}

template <class Exec>
ticket flush_cache(const Exec& exec, row_cache& cache) {
  static_assert(
      may_dereference<Exec, device_space>(),
      "ferry: a host execution space can't dereference cached rows in device_space; pass an instance of the device's execution space.");
  const cache_use use(cache, "flush");
  launch_context<Exec> call(exec, "flush");
  call.refuse_capture("but a flush ends what later verbs see as changes; flush before the capture");
  flush_rows(call, cache);
  return call.finish();
}

std::size_t cached_slots(row_cache& cache);

std::size_t cache_bytes(row_cache& cache);

/// Hits, misses, rows loaded and nanoseconds of exchanges since the memory was made. Blocks.
std::array<std::uint64_t, 4> read_tallies(const row_cache& cache);

cache::statistics read_statistics(row_cache& cache);

/// Gives the cache `rows` rows. `current` is the policy that all threads share.
template <class Exec = Kokkos::DefaultExecutionSpace, class T, class Space, class Policy>
void resize_cache(row_cache& cache, const array_ref<T, Space>& table, Policy& current, std::int64_t rows) {
  const cache_use use(cache, "cached_table");
  Policy policy = current.resized(rows);
  const auto initial_rows = policy.rows_from_start(cache.rows);
  cache_memory memory = memory_for(table, policy.most_rows(cache.rows));
  std::vector<cached_array> arrays;
  for (const cached_array& array : cache.arrays) {
    cached_array replacement;
    replacement.cold = array.cold;
    replacement.stride = array.stride;
    replacement.row_bytes = array.row_bytes;
    replacement.accesses = array.accesses;
    replacement.allocate(cache.label, memory.slots);
    arrays.push_back(std::move(replacement));
  }
  open_book(memory, initial_rows);
  {
    launch_context<Exec> call(Exec{}, "cached_table");
    flush_rows(call, cache);
    call.finish().join();
  }
  const auto sums = read_tallies(cache);
  const std::int64_t interval = cache.interval;
  const bool counted = cache.counts.rows() != 0;
  count_uses<Exec>(cache, policy, memory.slots);
  std::swap(cache.memory, memory);
  std::swap(cache.arrays, arrays);
  try {
    fill_cache(cache, initial_rows);
  } catch (...) {  // since the flush, the former memory and the table hold equal rows
    std::swap(cache.memory, memory);
    std::swap(cache.arrays, arrays);
    cache.interval = interval;
    if (!counted) cache.counts = {};
    throw;
  }
  for (std::size_t s = 0; s < sums.size(); ++s) cache.earlier[s] += sums[s];
  cache.due = cache.batches;
  current = std::move(policy);
}

/// The end of a cache: writes what has changed, and waits.
void end_cache(row_cache& cache) noexcept;

}  // namespace ferry::detail
