// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/transfer_counters.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ferry::detail {

/// The places of a move's source, destination and path among the counters of the process.
struct move_places {
  std::size_t source;
  std::size_t destination;
  std::size_t path;
};
template <class Path, class From, class To>
inline constexpr move_places places_of_move = {
    transfer_counters::place_of(transfer_counters::spaces, From::name),
    transfer_counters::place_of(transfer_counters::spaces, To::name),
    transfer_counters::place_of(transfer_counters::paths, Path::name)};

/// Adds one call.
void count_move(const move_places& places, std::int64_t bytes, bool zero_copy);

struct nothing_over_link {};

/// Counts the bytes of rows that a call moves from one array to another, for transfer_statistics. Keep the
/// result until the work is enqueued: it reports kernels that move rows over the link as one transfer. Without
/// `by_kernel` copy engines move them, and transfer() reports that.
template <class Path, class Exec, class From, class FromSpace, class To, class ToSpace>
[[nodiscard]] auto count_transfer([[maybe_unused]] launch_context<Exec>& call,
                                  const array_ref<From, FromSpace>& source,
                                  const array_ref<To, ToSpace>& target, std::int64_t bytes,
                                  [[maybe_unused]] bool by_kernel = true) {
  constexpr bool over_link = !is_host_exec<Exec> && Path::reaches_table && !Path::occupies_host_threads &&
                             (FromSpace::is_host_accessible || ToSpace::is_host_accessible);
  count_move(places_of_move<Path, FromSpace, ToSpace>, bytes, over_link && by_kernel);
  if constexpr (over_link)
    return transfer_region(ToSpace::name, target.data, FromSpace::name, source.data,
                           static_cast<std::size_t>(bytes), call.label(Path::name), by_kernel);
  else
    return nothing_over_link{};
}

/// Bytes that kernels moved, of those that count_transfer() counted, when they share the rows with host
/// threads.
template <class Path, class From, class FromSpace, class To, class ToSpace>
void moved_by_kernels(const array_ref<From, FromSpace>&, const array_ref<To, ToSpace>&, std::int64_t bytes) {
  transfer_counters::get().template counter_of<FromSpace, ToSpace, Path>().zero_copy_bytes.fetch_add(
      static_cast<std::uint64_t>(bytes), std::memory_order_relaxed);
}

}  // namespace ferry::detail
