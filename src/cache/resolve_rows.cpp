// SPDX-License-Identifier: Apache-2.0
#include <ferry/cache/resolve.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/rows/detail/packet.hpp>

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

/// Moves the rows that leave listed slots to host memory if they have changed, and those that enter to the
/// slots, as opaque units. Neighbouring threads hold neighbouring units of one row, each several loads in
/// flight: few blocks fill the link.
template <class Unit>
struct swap_rows {
  static constexpr unsigned int most_threads = 512;
  static constexpr int at_once = 4;

  detail::slot_book book;
  Unit* cold;
  Unit* hot;
  std::int64_t stride;  ///< of both, in units
  detail::fast_divisor units;
  std::int64_t threads;

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    const std::int64_t end = static_cast<std::int64_t>(*book.moving_count) * units.divisor();
    for (std::int64_t first = thread; first < end; first += at_once * threads) {
      Unit unit[at_once];
      Unit* target[at_once];
      for (int k = 0; k < at_once; ++k) {
        target[k] = nullptr;
        const std::int64_t i = first + k * threads;
        if (i >= end) continue;
        const std::int64_t item = units.quotient(i), offset = i - item * units.divisor();
        const std::int64_t slot = book.moving[item] >> 1;
        Unit* const place = hot + slot * stride + offset;
        const std::int64_t old_row = book.next_rows[slot] - 1, row = book.current_rows[slot] - 1;
        if ((book.moving[item] & 1) != 0 && old_row >= 0) cold[old_row * stride + offset] = *place;
        if (row < 0) continue;
        unit[k] = cold[row * stride + offset];
        target[k] = place;
      }
      for (int k = 0; k < at_once; ++k)
        if (target[k] != nullptr) *target[k] = unit[k];
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

namespace {

template <class Unit, class Exec>
void launch_swap(const Exec& exec, const std::string& label, const cache_memory& memory,
                 const cached_array& array, std::int64_t blocks) {
  constexpr auto unit = static_cast<std::int64_t>(sizeof(Unit));
  using kernel = kernels::swap_rows<Unit>;
  const std::int64_t units = array.row_bytes / unit;
  std::int64_t threads = (memory.slots * units + kernel::at_once - 1) / kernel::at_once;
  if constexpr (is_host_exec<Exec>)
    threads = std::min<std::int64_t>(threads, 64 * concurrency_of(exec));
  else
    threads = std::min(threads, blocks * kernel::most_threads);
  launch(exec, label, threads,
         kernel{memory.book, reinterpret_cast<Unit*>(array.cold), reinterpret_cast<Unit*>(array.hot),
                array.stride / unit, fast_divisor(units), threads});
}

}  // namespace

template <ExecutionSpace Exec>
void swap_listed_rows(launch_context<Exec>& call, row_cache& cache, const std::string& label,
                      std::int64_t most_blocks) {
  for (const cached_array& array : cache.arrays) {
    if (array.row_bytes == 0) continue;
    const std::uintptr_t alignment = array.cold | array.hot | static_cast<std::uintptr_t>(array.stride) |
                                     static_cast<std::uintptr_t>(array.row_bytes);
    if (alignment % 16 == 0)
      launch_swap<kernels::opaque16>(call.exec(), label, cache.memory, array, most_blocks);
    else if (alignment % 4 == 0)
      launch_swap<kernels::opaque<4>>(call.exec(), label, cache.memory, array, most_blocks);
    else
      launch_swap<kernels::opaque<1>>(call.exec(), label, cache.memory, array, most_blocks);
  }
}

template <ExecutionSpace Exec>
void empty_group(launch_context<Exec>& call, row_cache& cache, std::int64_t group) {
  const use_book& uses = cache.memory.uses;
  if (group < 0 || group >= uses.groups)
    throw invalid_argument("ferry::cached_table: there is no group " + std::to_string(group) +
                           " to forget: the cache of '" + cache.label + "' has " +
                           std::to_string(uses.groups));
  use_slots(call, cache, true);
  const std::string& label = call.label("lru", "forget");
  // All memory before the first launch.
  const std::string& fetch_label = call.label("lru", "fetch");
  const std::int64_t blocks = most_blocks<occupancy::full>(call.exec());
  launch(call.exec(), label, 1, kernels::clear_count{cache.memory.book.moving_count});
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
  if (shape.rank != 1 && shape.rank != 2)
    throw invalid_argument("ferry::" + std::string(verb) + ": " + rows.note().describe() +
                           " is no list of rows: it has neither one dimension nor two");
  if (shape.rank == 2 && shape.rows() != groups)
    throw invalid_argument("ferry::" + std::string(verb) + ": " + rows.note().describe() +
                           " must have a line for each of the " + std::to_string(groups) +
                           " groups of the cache of '" + cache.label + "'");
  if (!shape.is_contiguous())
    throw invalid_argument("ferry::" + std::string(verb) + ": the elements of " + rows.note().describe() +
                           " must be adjacent");
  if (groups == 0)
    throw invalid_argument("ferry::" + std::string(verb) + ": the rows of '" + cache.label +
                           "' have no elements, so its cache has no slots");
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
  template void empty_group(launch_context<EXEC>&, row_cache&, std::int64_t);
FERRY_FOR_SPACES_OF_DEVICE(FERRY_RESOLVE_ON)
#undef FERRY_RESOLVE_ON

}  // namespace ferry::detail
