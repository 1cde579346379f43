// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/cached_addresser.hpp>
#include <ferry/cache/detail/find_rows.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/rows/detail/gather_staged.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

/// Cached tables in pageable memory that the device does not reach: host threads bring their rows. Such
/// tables are only read.
namespace ferry::kernels {

/// The row that each slot is to be loaded with, -1 for none, as a list for host threads; one thread per slot.
struct list_loads {
  detail::slot_book book;
  std::int64_t* rows;
  bool every_slot;  ///< also the rows that slots hold already

  KOKKOS_FUNCTION void operator()(std::int64_t slot) const {
    const std::int64_t present_row = book.current_rows[slot] - 1, next_row = book.next_rows[slot] - 1;
    rows[slot] = every_slot ? present_row : present_row != next_row ? next_row : -1;
  }
};

/// Splits the locations of positions into slots, and rows of host memory; one thread per position.
struct split_locations {
  batch_locations locations;
  std::int64_t* slots;
  std::int64_t* rows;

  KOKKOS_FUNCTION void operator()(std::int64_t position) const {
    const auto location = locations.find(position);
    slots[position] = location.slot;
    rows[position] = location.slot < 0 ? location.row : -1;
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The slots of the table as an array.
template <class T, class Space>
array_ref<T, device_space> slots_of(const row_cache& cache, const array_ref<T, Space>& table) {
  array_ref<T, device_space> array;
  array.data = reinterpret_cast<T*>(cache.arrays.front().hot);
  array.rank = 2;
  array.extents = {cache.memory.slots, table.width()};
  array.strides = {table.row_stride(), 1};
  array.label = table.label;
  return array;
}

/// Rows of a table as bytes, from an address on.
template <class Byte, class Space>
array_ref<Byte, Space> byte_rows(const cached_array& table, std::uintptr_t address, std::int64_t rows) {
  array_ref<Byte, Space> view;
  view.data = reinterpret_cast<Byte*>(address);
  view.rank = 2;
  view.extents = {rows, table.row_bytes};
  view.strides = {table.stride, 1};
  view.label = "cached_table";
  return view;
}

/// Loads slots by host threads: those whose row is new, or all. `context` is the launch_context of a
/// verb on Exec. Occupies the calling thread.
template <class Exec>
void stage_rows(void* context, const row_cache& cache, bool every_slot) {
  auto& call = *static_cast<launch_context<Exec>*>(context);
  const std::string& label = call.label("cached", "load");
  const cached_array& table = cache.arrays.front();
  if (cache.memory.slots == 0 || table.row_bytes == 0) return;
  auto* rows = call.template pinned<std::int64_t>(cache.memory.slots);
  launch(call.exec(), label, cache.memory.slots, kernels::list_loads{cache.memory.book, rows, every_slot});
  auto source = byte_rows<const std::byte, pageable_space>(table, table.cold, cache.rows);
  source.accesses = table.accesses.lock();
  const auto target = byte_rows<std::byte, device_space>(table, table.hot, cache.memory.slots);
  wait_for_host_access(call, label, source);  // and for the list
  gather_staged(call, source, rows, target);
}

/// out[p] = the row of position p: a kernel moves the rows of device memory, then host threads bring the
/// others. `packed`: the locations of the positions.
template <class Exec, class T, class Space, class Out, class OutSpace>
void gather_by_host(launch_context<Exec>& call, const row_cache& cache,
                    const array_ref<const T, Space>& table, const std::int64_t* packed, std::int64_t n,
                    const array_ref<Out, OutSpace>& out) {
  const std::string& label = call.label("cached", "staged");
  auto* slots = call.template scratch<std::int64_t>(n);
  auto* rows = call.template pinned<std::int64_t>(n);
  launch(call.exec(), label, n, kernels::split_locations{{{cache.row_bits()}, packed}, slots, rows});
  launch_gather(call.exec(), label, slots_of(cache, table), out, kernels::listed_rows{slots}, n);
  if constexpr (OutSpace::is_host_accessible)
    wait_for_host_access(call, label, table, out);
  else
    wait_for_host_access(call, label, table);
  gather_staged(call, table, rows, out);
}

}  // namespace ferry::detail
