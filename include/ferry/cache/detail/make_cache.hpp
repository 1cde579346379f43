// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cache_policy.hpp>
#include <ferry/cache/detail/backing_table.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/cache/detail/stage_rows.hpp>
#include <ferry/cache/statistics.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <Kokkos_Core.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

/// The life of a row cache apart from verbs. Functions without an instance from the caller use the default
/// one.
namespace ferry::detail {

/// The facts of a policy for a table.
struct cache_choice {
  std::vector<std::int64_t> initial_rows;
  std::int64_t slots;
  std::int64_t interval;  ///< batches between two refreshes; 0 for none, and uses are not counted
  std::int64_t groups;    ///< that keep an order of use; 0 for other policies
  bool writes_through;    ///< verbs that write also write to host memory
};
template <class Policy>
cache_choice choose_by(const Policy& policy, const untyped_array& table) {
  auto initial_rows = policy.rows_from_start(table.shape.rows());
  const std::int64_t slots = policy.most_rows(table.shape.rows());
  cache_choice choice{std::move(initial_rows), table.shape.size() == 0 ? 0 : slots,
                      Policy::counts_rows ? policy.interval() : 0, 0, false};
  if constexpr (keeps_order<Policy>) {
    choice.groups = policy.groups.value();
    choice.writes_through = !policy.write_back;
  }
  return choice;
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

void require_tracked_rows(const untyped_array& array);

/// The cache of the table `arrays.front()` and of other arrays with a row for each of its rows, with its
/// first rows. `row_bytes`: bytes of the table's rows. `stage`: see row_cache.
std::unique_ptr<row_cache> fill_new_cache(std::span<const untyped_array> arrays, std::int64_t row_bytes,
                                          const cache_choice& choice, decltype(row_cache::stage) stage);

/// The cache of a table. `more`: other arrays with a row for each row of the table, which are cached with it.
/// Throws if kernels do not reach them.
template <bool Codes, class Exec = Kokkos::DefaultExecutionSpace, class T, class Space, class Policy,
          class... More>
std::unique_ptr<row_cache> make_cache(const array_ref<T, Space>& table, std::int64_t row_bytes,
                                      const Policy& policy, const More&... more) {
  require_kokkos("cached_table");
  const std::array<untyped_array, 1 + sizeof...(More)> arrays{table, more...};
  for (const untyped_array& array : arrays) require_tracked_rows(array);
  (require_direct_reach("cached_table", Exec{}, more), ...);
  const auto stage = is_staged<Exec, Codes>(table) ? &stage_rows<Exec> : nullptr;
  return fill_new_cache(arrays, row_bytes, choose_by(policy, table), stage);
}

template <class Exec>
consteval void require_cached_rows() {
  require_execution_space<Exec>();
  static_assert(
      may_dereference<Exec, device_space>(),
      "ferry: a host execution space can't dereference cached rows in device_space; pass an instance of the device's execution space.");
}

/// The checks common to verbs on cached tables, after those of the verb itself. Staged: whether host threads
/// may bring rows.
template <class Exec, class Chosen, bool Staged = false>
consteval void require_cached_verb() {
  using path_policy = typename Chosen::template get<path_category, path::automatic>;
  require_cached_rows<Exec>();
  static_assert(
      path_policy::chosen_at_run_time ||
          (!splits_rows<path_policy> && (Staged || !by_host_alone<path_policy>)),
      "ferry: kernels move the rows of a cached_table: path::direct or path::ordered; gather also takes path::staged, by which host threads bring the rows that are not cached, unless these are quantized.");
}

/// The check of verbs that write to cached tables.
template <class Table>
consteval void require_writable() {
  static_assert(!std::is_const_v<typename backing_table<Table>::value_type>,
                "ferry: the backing table of this cached_table is read-only, so verbs can't write to it.");
}

/// A call on the cache alone.
template <class Exec, class Work>
ticket call_on_cache(const Exec& exec, const char* verb, row_cache& cache, const Work& work) {
  require_cached_rows<Exec>();
  const cache_use use(cache, verb);
  launch_context<Exec> call(exec, verb);
  work(call);
  return call.finish();
}

template <class Exec>
ticket flush_cache(const Exec& exec, row_cache& cache) {
  return call_on_cache(exec, "flush", cache, [&](launch_context<Exec>& call) {
    call.refuse_capture("but a flush ends what later verbs see as changes; flush before the capture");
    flush_rows(call, cache);
  });
}

std::size_t cached_slots(row_cache& cache);

/// The slots of a cached array as an array, with all that lies between one row and the next one.
template <class T, class Space>
tensor_view<const T, device_space> rows_in_slots(row_cache& cache, std::size_t number,
                                                 const array_ref<T, Space>& rows) {
  std::array<std::size_t, max_rank> extents{cached_slots(cache), static_cast<std::size_t>(rows.row_stride())};
  const bool is_dense = rows.row_stride() == rows.width();
  for (std::size_t d = 1; is_dense && d < rows.rank; ++d)
    extents[d] = static_cast<std::size_t>(rows.extents[d]);
  return {reinterpret_cast<const T*>(cache.arrays[number].hot),
          shape<dynamic_rank>::make(std::span<const std::size_t>(extents.data(), is_dense ? rows.rank : 2),
                                    cache.label + "::hot", sizeof(T))};
}

std::size_t cache_bytes(row_cache& cache);

cache::statistics read_statistics(row_cache& cache);

/// Gives the cache other slots. The caller holds a cache_use.
void resize_cache(row_cache& cache, const cache_choice& choice);

/// Gives the cache `rows` rows. `current` is the policy that all threads share.
template <class Policy>
void resize_cache(row_cache& cache, const untyped_array& table, Policy& current, std::int64_t rows) {
  const cache_use use(cache, "cached_table");
  Policy policy = current.resized(rows);
  resize_cache(cache, choose_by(policy, table));
  current = std::move(policy);
}

/// The end of a cache: writes what has changed, and waits.
void end_cache(row_cache& cache) noexcept;

}  // namespace ferry::detail
