// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/memory/detail/trace_span.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/transfer_counters.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ferry::detail {

/// Adds one call, and notes it in the event of the call.
inline void count_move(trace_span& event, transfer_counter& counter, std::int64_t bytes, bool zero_copy,
                       std::string_view path, std::string_view from, std::string_view to) {
  const auto moved = static_cast<std::uint64_t>(bytes);
  counter.calls.fetch_add(1, std::memory_order_relaxed);
  counter.bytes.fetch_add(moved, std::memory_order_relaxed);
  if (zero_copy) counter.zero_copy_bytes.fetch_add(moved, std::memory_order_relaxed);
  if (!event.is_heard()) return;
  event.note("path", path);
  event.note("from", from);
  event.note("to", to);
  event.note("bytes", bytes);
}

struct nothing_over_link {};

/// Counts the bytes of rows that a call moves from one array to another, for transfer_statistics and the
/// trace. Keep the result until the work is enqueued: it reports kernels that move rows over the link as one
/// transfer. Without `by_kernel` copy engines move them, and transfer() reports that.
template <class Path, class Exec, class From, class FromSpace, class To, class ToSpace>
[[nodiscard]] auto moves(launch_context<Exec>& of, const array_ref<From, FromSpace>& from,
                         const array_ref<To, ToSpace>& to, std::int64_t bytes,
                         [[maybe_unused]] bool by_kernel = true) {
  constexpr bool over_link = !is_host_exec<Exec> && Path::reaches_table && !Path::occupies_host_threads &&
                             (FromSpace::is_host_accessible || ToSpace::is_host_accessible);
  count_move(of.span(), transfer_counters::get().template of<FromSpace, ToSpace, Path>(), bytes,
             over_link && by_kernel, Path::name, FromSpace::name, ToSpace::name);
  if constexpr (over_link)
    return transfer_region(ToSpace::name, to.data, FromSpace::name, from.data,
                           static_cast<std::size_t>(bytes), of.label(Path::name), by_kernel);
  else
    return nothing_over_link{};
}

/// Of the bytes counted by moves(), those that kernels moved where they share the rows with host threads.
template <class Path, class From, class FromSpace, class To, class ToSpace>
void moved_by_kernels(const array_ref<From, FromSpace>&, const array_ref<To, ToSpace>&, std::int64_t bytes) {
  transfer_counters::get().template of<FromSpace, ToSpace, Path>().zero_copy_bytes.fetch_add(
      static_cast<std::uint64_t>(bytes), std::memory_order_relaxed);
}

}  // namespace ferry::detail
