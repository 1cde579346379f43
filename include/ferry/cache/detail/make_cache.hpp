// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/cache_use.hpp>
#include <ferry/cache/detail/exchange_rows.hpp>
#include <ferry/cache/detail/flush_rows.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/cache/detail/stage_rows.hpp>
#include <ferry/cache/statistics.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/dynamic_array.hpp>
#include <ferry/memory/detail/owned.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/rows/init.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/transfer.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// The life of a row cache apart from verbs. What has no instance from the caller runs on the default one.
namespace ferry::detail {

/// The slots for `kept`: row + 1 for each slot, 0 for none.
template <class...>
std::vector<std::int64_t> slots_for(const std::vector<std::int64_t>& kept, const cache_memory& memory) {
  std::vector<std::int64_t> slots(static_cast<std::size_t>(memory.slots), 0);
  if (memory.sets == 0) {
    for (std::size_t i = 0; i < kept.size() && i < slots.size(); ++i) slots[i] = kept[i] + 1;
    return slots;
  }
  constexpr auto ways = static_cast<std::size_t>(kernels::set_directory::ways);
  std::vector<unsigned char> used(static_cast<std::size_t>(memory.sets), 0);
  for (const std::int64_t row : kept) {
    const auto set = static_cast<std::size_t>(row % memory.sets);
    if (used[set] < ways) slots[set * ways + used[set]++] = row + 1;
  }
  return slots;
}

/// Clears the book of new memory, whose slots are to get the rows `kept`. Takes all memory that this needs.
template <class Exec = Kokkos::DefaultExecutionSpace>
void open_book(cache_memory& memory, const std::vector<std::int64_t>& kept) {
  const Exec exec;
  fill(exec, make_ref(memory.words), std::uint64_t{0});
  if (kept.empty()) return;
  const auto slots = slots_for(kept, memory);
  launch_context<Exec> of(exec, "cached_table");
  auto* there = of.template pinned<std::int64_t>(memory.slots);
  std::copy(slots.begin(), slots.end(), there);
  of.writes_to(tracked(memory.words.accesses()));
  transfer(exec, "ferry::cached_table", memory.book.wanted, device_space::name, there, pinned_space::name,
           memory.slots * static_cast<std::int64_t>(sizeof(std::int64_t)));
  of.finish().join();
}

/// Loads the rows that open_book() has listed.
template <class Exec = Kokkos::DefaultExecutionSpace>
void fill_cache(row_cache& cache, const std::vector<std::int64_t>& kept) {
  if (kept.empty()) return;
  launch_context<Exec> of(Exec{}, "cached_table");
  use_slots(of, cache, true);
  exchange_now(of, cache);
  of.finish().join();
}

template <class Directory, class T, class Space>
cache_memory memory_for(const array_ref<T, Space>& table, std::int64_t most) {
  const std::int64_t row_bytes = table.row_stride() * static_cast<std::int64_t>(sizeof(T));
  const bool none = most == 0 || row_bytes == 0 || table.rows() == 0;  // then few slots, and no directory
  return {std::string(table.label), table.rows(), none ? 0 : most,
          !none && Directory::is_dense(table.rows(), most * row_bytes)};
}

template <class Exec, class Policy>
void count_uses(row_cache& cache, const Policy& policy, std::int64_t most) {
  if constexpr (Policy::counts_rows) {
    const std::int64_t interval = most == 0 ? 0 : policy.interval();
    if (interval != 0 && cache.counts.rows() == 0) {
      tensor<std::uint32_t, device_space> counts(cache.label + "::counts", cache.rows);
      fill(Exec{}, make_ref(counts), std::uint32_t{0});
      cache.counts = std::move(counts);
    }
    cache.interval = interval;
  }
}

/// Whether host threads bring the rows of the table. Throws invalid_argument where they can't: rows of 8 bits
/// become numbers in the device.
template <class Exec, bool Codes, class T, class Space>
bool is_staged(const array_ref<T, Space>& table) {
  if constexpr (!is_host_exec<Exec> && std::is_same_v<Space, pageable_space> && !Codes)
    return !execution_backend<Exec>::reaches_pageable(Exec{});
  require_direct_reach("cached_table", Exec{}, table);
  return false;
}

/// The cache of a table, with its first rows.
template <class Directory, bool Codes, class Exec = Kokkos::DefaultExecutionSpace, class T, class Space,
          class Policy>
owned<row_cache> make_cache(const array_ref<T, Space>& table, std::int64_t row_bytes, const Policy& policy) {
  require_kokkos("cached_table");
  const std::string label(table.label);
  if (table.accesses == nullptr)
    throw invalid_argument("ferry::cached_table: " + table.describe() +
                           " is an empty handle, or no ferry::tensor with a record of its accesses");
  require_dense_rows("cached_table", table);
  const bool staged = is_staged<Exec, Codes>(table);
  const std::int64_t most = policy.most_rows(table.rows());
  const auto kept = policy.rows_from_start(table.rows());
  auto made = make_owned<row_cache>();
  made->label = label;
  made->rows = table.rows();
  if (staged) made->stage = &stage_rows<Exec>;
  made->memory = memory_for<Directory>(table, most);
  made->table = table.accesses;
  made->arrays.push_back(cached_array::of(table, row_bytes));
  made->arrays.front().allocate(label, made->memory.slots);
  count_uses<Exec>(*made, policy, most);
  open_book<Exec>(made->memory, kept);
  if (!table.accesses->attach_cache(label))
    throw invalid_argument("ferry::cached_table: " + table.describe() + " has a cached_table already");
  try {
    fill_cache<Exec>(*made, kept);
  } catch (...) {
    table.accesses->detach_cache();
    throw;
  }
  table.accesses->hold(row_hold::readable);
  return made;
}

template <class Exec>
ticket flush_cache(const Exec& exec, row_cache& cache) {
  static_assert(
      may_dereference<Exec, device_space>(),
      "ferry: a host execution space can't dereference cached rows in device_space; pass an instance of the device's execution space.");
  const cache_use in(cache, "flush");
  launch_context<Exec> of(exec, "flush");
  of.refuse_capture("but a flush ends what later verbs see as changes; flush before the capture");
  flush_rows(of, cache);
  return of.finish();
}

inline std::size_t cached_slots(row_cache& cache) {
  const std::lock_guard lock(cache.guard);
  return static_cast<std::size_t>(cache.memory.slots);
}

inline std::size_t cache_bytes(row_cache& cache) {
  const std::lock_guard lock(cache.guard);
  std::size_t all =
      cache.memory.words.size() * sizeof(std::uint64_t) + cache.counts.size() * sizeof(std::uint32_t);
  for (const cached_array& each : cache.arrays) all += each.memory.size();
  return all;
}

/// Hits, misses, rows loaded and nanoseconds of exchanges since the memory was made. Blocks.
template <class Exec = Kokkos::DefaultExecutionSpace>
std::array<std::uint64_t, 4> read_tallies(const row_cache& cache) {
  constexpr std::size_t spread = std::size_t{2} * tally_room;
  std::array<std::uint64_t, spread + 2> all{};
  cache.accesses()->wait_for_all();
  execution_backend<Exec>::read(all.data(), cache.memory.book.tallies, sizeof all);
  std::array<std::uint64_t, 4> sums{};
  for (std::size_t i = 0; i < spread; ++i) sums[i / tally_room] += all[i];
  sums[2] = all[spread];
  sums[3] = all[spread + 1];
  return sums;
}

template <class Exec = Kokkos::DefaultExecutionSpace>
cache::statistics read_statistics(row_cache& cache) {
  const std::lock_guard lock(cache.guard);
  auto sums = read_tallies<Exec>(cache);
  for (std::size_t s = 0; s < sums.size(); ++s) sums[s] += cache.earlier[s];
  const auto row = static_cast<std::uint64_t>(cache.arrays.front().row_bytes);
  return {sums[0], sums[1], sums[0] * row, cache.refreshes, sums[2], static_cast<double>(sums[3]) * 1e-9};
}

/// Gives the cache `rows` rows. `current` is the policy that all threads share.
template <class Directory, class Exec = Kokkos::DefaultExecutionSpace, class T, class Space, class Policy>
void resize_cache(row_cache& cache, const array_ref<T, Space>& table, Policy& current, std::int64_t rows) {
  const cache_use in(cache, "cached_table");
  Policy policy = current.resized(rows);
  const std::int64_t most = policy.most_rows(cache.rows);
  const auto kept = policy.rows_from_start(cache.rows);
  cache_memory memory = memory_for<Directory>(table, most);
  dynamic_array<cached_array> arrays;
  for (const cached_array& each : cache.arrays) {
    cached_array made;
    made.cold = each.cold;
    made.stride = each.stride;
    made.row_bytes = each.row_bytes;
    made.accesses = each.accesses;
    made.allocate(cache.label, memory.slots);
    arrays.push_back(std::move(made));
  }
  open_book<Exec>(memory, kept);
  {
    launch_context<Exec> of(Exec{}, "cached_table");
    flush_rows(of, cache);
    of.finish().join();
  }
  const auto sums = read_tallies<Exec>(cache);
  const std::int64_t interval = cache.interval;
  const bool counted = cache.counts.rows() != 0;
  count_uses<Exec>(cache, policy, most);
  std::swap(cache.memory, memory);
  std::swap(cache.arrays, arrays);
  try {
    fill_cache<Exec>(cache, kept);
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
template <class Exec = Kokkos::DefaultExecutionSpace>
void end_cache(row_cache& cache) noexcept {
  try {
    if (!Kokkos::is_initialized()) {
      if (cache.changed || cache.captured)
        std::fprintf(
            stderr,
            "ferry: the cached_table of '%s' was destroyed after Kokkos::finalize; changes that were "
            "not flushed are lost\n",
            cache.label.c_str());
    } else {
      const bool whole = !cache.arrays.front().accesses.expired();
      if (whole && (cache.changed || cache.captured)) flush_cache(Exec{}, cache).join();
      cache.accesses()->wait_for_all();
      if (cache.exchange.done != nullptr) cache.exchange.done->wait();
    }
  } catch (const std::exception& lost) {
    std::fprintf(stderr, "ferry: the cached_table of '%s' could not write its changes: %s\n",
                 cache.label.c_str(), lost.what());
  }
  for (const cached_array& each : cache.arrays)
    if (const auto alive = each.accesses.lock()) alive->detach_cache();
}

}  // namespace ferry::detail
