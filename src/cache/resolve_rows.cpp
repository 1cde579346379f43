// SPDX-License-Identifier: Apache-2.0
#include <ferry/cache/resolve.hpp>

#include "../../backends/enabled.hpp"
#include "exchange_rows.hpp"

#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace ferry::kernels {

/// Empties a group: lists its changed slots, whose rows leave, and puts all slots into their first order.
struct empty_group {
  detail::slot_book book;
  detail::use_book uses;
  std::int64_t group;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t slot = group * uses.group_slots + i, row = book.current_rows[slot] - 1;
    uses.order[slot] = static_cast<std::int32_t>(i);
    uses.marks[slot] = 0;
    if (row < 0) return;
    book.directory.erase(row);
    book.current_rows[slot] = 0;
    book.next_rows[slot] = row + 1;
    if (book.changed[slot] == 0) return;
    book.changed[slot] = 0;
    book.moving[Kokkos::atomic_fetch_add(book.moving_count, std::uint64_t{1})] = slot << 1 | 1;
  }
};

/// The exchanges in book.moving.
struct listed_exchanges {
  detail::slot_book book;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t count() const {
    return static_cast<std::int64_t>(*book.moving_count);
  }
  KOKKOS_FORCEINLINE_FUNCTION slot_exchange operator()(std::int64_t item) const {
    const std::int64_t entry = book.moving[item], slot = entry >> 1;
    return {slot, (entry & 1) != 0 ? book.next_rows[slot] - 1 : -1, book.current_rows[slot] - 1};
  }
};

/// The rows of a batch that lie in slots, on their way to host memory.
struct changed_items {
  batch_locations locations;
  std::int64_t items;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t count() const { return items; }
  KOKKOS_FORCEINLINE_FUNCTION slot_exchange operator()(std::int64_t item) const {
    const row_location location = locations.find(item);
    return {location.slot, location.row, -1};
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

namespace {

/// The threads of a number of blocks; of a host some for each of its own.
template <class Exec>
std::int64_t threads_of(const Exec& exec, std::int64_t blocks) {
  if constexpr (is_host_exec<Exec>)
    return 64 * concurrency_of(exec);
  else
    return blocks * kernels::exchange_rows<kernels::opaque16, kernels::listed_exchanges>::most_threads;
}

}  // namespace

template <ExecutionSpace Exec>
void swap_listed_rows(launch_context<Exec>& call, row_cache& cache, const std::string& label,
                      std::int64_t most_blocks) {
  cache.captured_moves = cache.captured_moves || call.capturing();
  const std::int64_t threads = threads_of(call.exec(), most_blocks);
  for (const cached_array& array : cache.arrays)
    launch_exchange(call.exec(), label, array, kernels::listed_exchanges{cache.memory.book},
                    cache.memory.slots, threads);
}

template <ExecutionSpace Exec>
void write_through(launch_context<Exec>& call, const std::string& label, const cached_array& array,
                   const kernels::batch_locations& locations, std::int64_t items) {
  launch_exchange(call.exec(), label, array, kernels::changed_items{locations, items}, items,
                  threads_of(call.exec(), kernels::missed_items::teams));
}

template <ExecutionSpace Exec>
void empty_group(launch_context<Exec>& call, row_cache& cache, std::int64_t group) {
  const use_book& uses = cache.memory.uses;
  if (group < 0 || group >= uses.groups)
    throw invalid_argument(joined("ferry::forget: there is no group ", group, "; the cache of '", cache.label,
                                  "' has ", uses.groups));
  use_slots(call, cache, true);
  const std::string& label = call.label("lru", "forget");
  // All memory before the first launch.
  const std::string& fetch_label = call.label("lru", "fetch");
  const std::int64_t blocks = most_blocks<occupancy::full>(call.exec());
  launch(call.exec(), label, 1, kernels::clear_numbers<std::uint64_t>{cache.memory.book.moving_count});
  launch(call.exec(), label, uses.group_slots, kernels::empty_group{cache.memory.book, uses, group});
  swap_listed_rows(call, cache, fetch_label, blocks);
}

void require_positions(const char* verb, std::int64_t positions) {
  if (positions >= (std::int64_t{1} << 31) - 1)
    throw invalid_argument(joined("ferry::", verb, ": a batch of ", positions,
                                  " positions exceeds the 2^31 - 2 of a table under cache::lru"));
}

void require_lists(const char* verb, const untyped_array& rows, const row_cache& cache) {
  const std::int64_t groups = cache.memory.uses.groups;
  const array_shape& shape = rows.shape;
  const auto refuse = [&](const auto&... text) {
    throw invalid_argument(joined("ferry::", verb, ": ", rows.note().describe(), text...));
  };
  if (groups == 0) refuse(" has no slots: the rows of '", cache.label, "' have no elements");
  if (shape.rank != 1 && shape.rank != 2) refuse(" is no list of rows: it has neither one dimension nor two");
  if (shape.rank == 2 && shape.rows() != groups)
    refuse(" must have a line for each of the ", groups, " groups of the cache of '", cache.label, "'");
  if (!shape.is_contiguous()) refuse(" must have its elements side by side");
}

void require_slot_for_each(const untyped_array& rows, const untyped_array& slots) {
  if (rows.shape.rank == slots.shape.rank && rows.shape.extents == slots.shape.extents &&
      slots.shape.is_contiguous()) {
    if (overlap(rows, slots))
      throw invalid_argument("ferry::resolve: " + slots.note().describe() + " shares memory with " +
                             rows.note().describe() + ", which is read until all slots are written");
    return;
  }
  throw invalid_argument("ferry::resolve: " + slots.note().describe() + " must have a slot for each row of " +
                         rows.note().describe() + ", one behind the other");
}

#define FERRY_RESOLVE_ON(EXEC)                                                                         \
  template void swap_listed_rows(launch_context<EXEC>&, row_cache&, const std::string&, std::int64_t); \
  template void write_through(launch_context<EXEC>&, const std::string&, const cached_array&,          \
                              const kernels::batch_locations&, std::int64_t);                          \
  template void empty_group(launch_context<EXEC>&, row_cache&, std::int64_t);
FERRY_FOR_SPACES_OF_DEVICE(FERRY_RESOLVE_ON)
#undef FERRY_RESOLVE_ON

}  // namespace ferry::detail
