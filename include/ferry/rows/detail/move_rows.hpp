// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/convert_rows.hpp>
#include <ferry/rows/detail/gather_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/rows/detail/serve_ring.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/worker_kernel.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

/// The parts that the verbs share for moving rows: opaque units, launches, runs of rows.
namespace ferry::detail {

template <class T, class Space>
array_ref<T, Space> dense_rows(T* data, std::int64_t rows, std::int64_t width, const char* label) {
  array_ref<T, Space> made;
  made.data = data;
  made.rank = 2;
  made.extents = {rows, width};
  made.make_dense();
  made.label = label;
  return made;
}

/// Bytes of `count` rows of an array.
template <class T, class Space>
std::int64_t bytes_of_rows(const array_ref<T, Space>& array, std::int64_t count) {
  return count * array.width() * static_cast<std::int64_t>(sizeof(T));
}

/// Rows [first, first + count) of an array with dense rows, as a table.
template <class T, class Space>
array_ref<T, Space> rows_from(const array_ref<T, Space>& array, std::int64_t first, std::int64_t count) {
  array_ref<T, Space> made;
  made.data = array.data + first * array.row_stride();
  made.rank = 2;
  made.extents = {count, array.width()};
  made.strides = {array.row_stride(), 1};
  made.label = array.label;
  return made;
}

/// The widest opaque unit, of at most 8 bytes, that divides an element and for which any element is aligned:
/// the lowest set bit of its size and alignment.
template <class T>
using unit_of =
    kernels::opaque<std::min<std::size_t>(8, (sizeof(T) | alignof(T)) & (~(sizeof(T) | alignof(T)) + 1))>;

/// Whether the rows of all arrays start on 16-byte boundaries and end there.
template <class... Arrays>
bool in_wide_units(const Arrays&... arrays) {
  constexpr auto unit = static_cast<std::int64_t>(sizeof(kernels::opaque16));
  const auto fits = [](const auto& array) {
    constexpr auto element = static_cast<std::int64_t>(sizeof(*array.data));
    return reinterpret_cast<std::uintptr_t>(array.data) % unit == 0 && array.width() * element % unit == 0 &&
           array.row_stride() * element % unit == 0;
  };
  return (fits(arrays) && ...);
}

/// Whether the rows of all arrays consist of whole packets of `Elements` elements, each at its packet's
/// alignment.
template <int Elements, class... Arrays>
bool in_packets(const Arrays&... arrays) {
  const auto fits = [](const auto& array) {
    constexpr auto bytes = Elements * sizeof(*array.data);
    return reinterpret_cast<std::uintptr_t>(array.data) % bytes == 0 && array.width() % Elements == 0 &&
           array.row_stride() % Elements == 0;
  };
  return (fits(arrays) && ...);
}

template <class Unit, class T, class Space>
auto as_units(const array_ref<T, Space>& array) {
  using unit = std::conditional_t<std::is_const_v<T>, const Unit, Unit>;
  const auto in_units = [](std::int64_t elements) {
    return elements * static_cast<std::int64_t>(sizeof(T)) / static_cast<std::int64_t>(sizeof(Unit));
  };
  struct units {
    unit* data;
    std::int64_t stride;
    std::int64_t width;
  };
  return units{reinterpret_cast<unit*>(array.data), in_units(array.row_stride()), in_units(array.width())};
}

/// Rows as opaque units of 16 bytes, or of the element's unit_of: stride and width in units.
template <class T, class Space>
auto in_units(const array_ref<T, Space>& array, bool wide) {
  struct units {
    std::conditional_t<std::is_const_v<T>, const void*, void*> data;
    std::int64_t stride;
    std::int64_t width;
    bool wide;
  };
  if (wide) {
    const auto as = as_units<kernels::opaque16>(array);
    return units{as.data, as.stride, as.width, true};
  }
  const auto as = as_units<unit_of<std::remove_const_t<T>>>(array);
  return units{as.data, as.stride, as.width, false};
}

/// out[source.position(k)] = table[source.row(k)] for each item k, on any execution space.
template <class Exec, class T, class TableSpace, class Out, class OutSpace, class Source,
          class Order = schedule::flat>
void launch_gather(const Exec& exec, const std::string& label, const array_ref<T, TableSpace>& table,
                   const array_ref<Out, OutSpace>& out, const Source& source, std::int64_t items,
                   const Order& order = {}) {
  using in = std::remove_const_t<T>;
  constexpr bool moves = std::is_same_v<in, Out>;
  const std::int64_t wide = out.width();
  const std::int64_t from_step = table.row_stride();
  const std::int64_t to_step = out.row_stride();
  if constexpr (is_host_exec<Exec>) {
    constexpr bool opaque = moves && sizeof(unit_of<in>) == sizeof(in);
    using from_unit = std::conditional_t<opaque, unit_of<in>, in>;
    using to_unit = std::conditional_t<opaque, unit_of<in>, Out>;
    using kernel = kernels::gather_blocks<to_unit, from_unit, Source>;
    const std::int64_t parts = (wide + kernel::block - 1) / kernel::block;
    launch(exec, label, order, items, parts,
           kernel{reinterpret_cast<const from_unit*>(table.data), from_step,
                  reinterpret_cast<to_unit*>(out.data), to_step, wide, parts, items, source});
  } else if constexpr (moves) {
    const bool in_wide = in_wide_units(table, out);
    const auto from = in_units(table, in_wide);
    const auto to = in_units(out, in_wide);
    const auto* data = static_cast<const void*>(from.data);
    if constexpr (std::is_same_v<Order, schedule::flat>) {
      using kernel = kernels::gather_row_pairs<unit_of<in>, Source>;
      const std::int64_t step = kernel::step_for(to.width, in_wide);
      launch(exec, label, order, kernel::pairs(items, step), to.width,
             kernel{data, from.stride, to.data, to.stride, fast_divisor(to.width), source, items, step,
                    in_wide});
    } else {
      launch(exec, label, order, items, to.width,
             kernels::gather_rows<unit_of<in>, Source>{data, from.stride, to.data, to.stride,
                                                       fast_divisor(to.width), source, in_wide});
    }
  } else {
    constexpr int each = kernels::packed_tile::elements;
    const bool packed = in_packets<each>(table, out);
    const std::int64_t tiles = packed ? wide / each : wide;
    launch(exec, label, order, items, tiles,
           kernels::convert_rows<Out, in, Source>{table.data, from_step, out.data, to_step,
                                                  fast_divisor(tiles), packed, source});
  }
}

/// The mover from a slot to rows of `out`, in the widest unit that the alignment allows.
template <class Exec, class Out, class Space, class Source>
auto mover_from_slot(const array_ref<Out, Space>& out, const Source& source) {
  const auto to = in_units(out, in_wide_units(out));
  return kernels::rows_from_slot<Exec, unit_of<Out>, Source>{to.data, to.stride, fast_divisor(to.width),
                                                             source, to.wide};
}

/// The mover from rows of `table` to a slot.
template <class T, class Space, class Source>
auto mover_to_slot(const array_ref<T, Space>& table, const Source& source) {
  const auto from = in_units(table, in_wide_units(table));
  return kernels::rows_to_slot<unit_of<std::remove_const_t<T>>, Source>{
      from.data, from.stride, fast_divisor(from.width), source, from.wide};
}

/// rows[p] = the row of each index or -1, found by the host's threads. Findings go to the ticket.
template <class Bounds, class Exec, class Index, class Space>
void resolve_on_host(launch_context<Exec>& of, const array_ref<Index, Space>& indices,
                     std::int64_t table_rows, std::int64_t* rows) {
  using plain = std::remove_const_t<Index>;
  const std::string& label = of.label("staged", "resolve");
  const plain* at_host = indices_for_host(of, indices);
  const kernels::index_rows<plain, Bounds> source{at_host, table_rows, of.host_report()};
  const kernels::resolve_indices<plain, Bounds> resolve{source, rows, nullptr, nullptr};
  if constexpr (is_host_exec<Exec>) {
    launch(of.exec(), label, indices.rows(), resolve);
    of.exec().fence(label);
  } else {
    run_on_workers(label, indices.rows(), resolve);
  }
}

/// For rows without elements: nothing moves, but bad indices are still found.
template <class Bounds, class Exec, class Index, class Space>
void look_at_bounds(launch_context<Exec>& of, const array_ref<Index, Space>& indices,
                    std::int64_t table_rows) {
  using plain = std::remove_const_t<Index>;
  if constexpr (Bounds::reports) {
    if (indices.rows() == 0) return;
    const kernels::index_rows<plain, Bounds> source{indices_for_kernels(of, indices), table_rows,
                                                    of.report()};
    launch(of.exec(), of.label("validate"), indices.rows(),
           kernels::resolve_indices<plain, Bounds>{source, nullptr, nullptr, nullptr});
  }
}

}  // namespace ferry::detail
