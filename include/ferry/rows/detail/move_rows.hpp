// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/device.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/rows/detail/chunks.hpp>
#include <ferry/rows/detail/gather_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

/// The parts that the verbs share for moving rows: opaque units, launches, runs of rows.
namespace ferry::detail {

template <class T, class Space>
array_ref<T, Space> dense_rows(T* data, std::int64_t rows, std::int64_t width, const char* label) {
  array_ref<T, Space> array;
  array.data = data;
  array.rank = 2;
  array.extents = {rows, width};
  array.make_dense();
  array.label = label;
  return array;
}

/// Bytes of `count` rows of an array.
template <class T, class Space>
std::int64_t bytes_of_rows(const array_ref<T, Space>& array, std::int64_t count) {
  return count * array.width() * static_cast<std::int64_t>(sizeof(T));
}

/// Rows [first, first + count) of an array with dense rows, as a table.
template <class T, class Space>
array_ref<T, Space> rows_from(const array_ref<T, Space>& array, std::int64_t first, std::int64_t count) {
  array_ref<T, Space> part;
  part.data = array.data + first * array.row_stride();
  part.rank = 2;
  part.extents = {count, array.width()};
  part.strides = {array.row_stride(), 1};
  part.label = array.label;
  return part;
}

/// The widest opaque unit, of at most 8 bytes, that divides an element and for which any element is aligned:
/// the lowest set bit of its size and alignment.
template <class T>
using unit_of =
    kernels::opaque<std::min<std::size_t>(8, (sizeof(T) | alignof(T)) & (~(sizeof(T) | alignof(T)) + 1))>;

/// True if the rows of an array are whole units of a number of bytes, each unit aligned to its size, and the
/// stride of its rows has 32 bits without a sign, see kernels::row_offset.
template <class T, class Space>
bool in_units_of(std::size_t bytes, const array_ref<T, Space>& array) {
  constexpr auto element = static_cast<std::int64_t>(sizeof(T));
  const auto unit = static_cast<std::int64_t>(bytes);
  return reinterpret_cast<std::uintptr_t>(array.data) % bytes == 0 && array.width() * element % unit == 0 &&
         array.row_stride() * element % unit == 0 && array.row_stride() >= 0 &&
         array.row_stride() <= std::numeric_limits<std::uint32_t>::max();
}

/// True if the rows of all arrays start on 16-byte boundaries and end there.
template <class... Arrays>
bool in_wide_units(const Arrays&... arrays) {
  return (in_units_of(sizeof(kernels::opaque16), arrays) && ...);
}

/// True if the rows of all arrays consist of whole packets of `Elements` elements, each at its packet's
/// alignment.
template <int Elements, class... Arrays>
bool in_packets(const Arrays&... arrays) {
  return (in_units_of(Elements * sizeof(typename Arrays::value_type), arrays) && ...);
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
  const auto unit =
      static_cast<std::int64_t>(wide ? sizeof(kernels::opaque16) : sizeof(unit_of<std::remove_const_t<T>>));
  const auto count = [&](std::int64_t elements) {
    return elements * static_cast<std::int64_t>(sizeof(T)) / unit;
  };
  return units{array.data, count(array.row_stride()), count(array.width()), wide};
}

/// Rows as a kernel reads them in units of some size: row r begins r * stride units after `data`, for each r
/// that the source returns.
template <class T, class Source>
struct rows_for_reading {
  const T* data;
  std::int64_t stride;
  Source source;
};
template <class T, class Space, class Source>
rows_for_reading<T, Source> read_in_units(std::size_t bytes, const array_ref<T, Space>& rows,
                                          const Source& source) {
  return {rows.data,
          rows.row_stride() * static_cast<std::int64_t>(sizeof(T)) / static_cast<std::int64_t>(bytes),
          source};
}

/// The memory in which the rows of an array lie; of other rows all.
template <class Rows>
kernels::readable_memory memory_of_rows([[maybe_unused]] const Rows& rows) {
  if constexpr (std::is_base_of_v<array_shape, Rows>) {
    const auto begin = reinterpret_cast<std::uintptr_t>(rows.data);
    const std::int64_t elements = rows.rows() > 0 ? (rows.rows() - 1) * rows.row_stride() + rows.width() : 0;
    return {begin, begin + static_cast<std::uintptr_t>(elements) * sizeof(typename Rows::value_type)};
  } else {
    return {};
  }
}

/// True if a device reads these rows from memory of the host.
template <class Rows>
inline constexpr bool lies_behind_link = false;
template <class T, class Space>
inline constexpr bool lies_behind_link<array_ref<T, Space>> = Space::is_host_accessible;

/// launch_gather for rows that are moved as they are, on a device, when their ends are no boundaries of 16
/// bytes.
template <class Exec, class Rows, class Out, class OutSpace, class Source, class Order>
void launch_chunks(const Exec& exec, const std::string& label, const Rows& rows,
                   const array_ref<Out, OutSpace>& out, const Source& source, std::int64_t items,
                   const Order& order) {
  constexpr int grain = std::min<int>(4, sizeof(unit_of<Out>));
  constexpr auto element = static_cast<std::int64_t>(sizeof(Out));
  const auto table = read_in_units(1, rows, source);
  using source_type = std::remove_const_t<decltype(table.source)>;
  const std::int64_t stride = out.row_stride() * element, width = out.width() * element;
  constexpr bool over_link = lies_behind_link<Rows> || OutSpace::is_host_accessible;
  if constexpr (over_link) {
    using kernel = kernels::gather_row_lines<source_type>;
    const auto in_words = [](auto... numbers) { return ((numbers % 4 == 0) && ...); };
    if (grain == 4 || in_words(reinterpret_cast<std::uintptr_t>(table.data),
                               reinterpret_cast<std::uintptr_t>(out.data), table.stride, stride, width))
      return launch(exec, label, order, items, kernel::lanes,
                    kernel{reinterpret_cast<const std::byte*>(table.data), table.stride,
                           reinterpret_cast<std::byte*>(out.data), stride, width, table.source,
                           lies_behind_link<Rows>});
  }
  if constexpr (!over_link || grain != 4) {
    using kernel = kernels::gather_row_chunks<grain, source_type>;
    const std::int64_t chunks =
        kernels::chunks_of_rows(reinterpret_cast<std::uintptr_t>(out.data), stride, width, grain);
    launch(exec, label, order, kernel::groups(items), chunks,
           kernel{reinterpret_cast<const std::byte*>(table.data), table.stride,
                  reinterpret_cast<std::byte*>(out.data), stride, width, fast_divisor(chunks), table.source,
                  items, memory_of_rows(rows)});
  }
}

/// out[source.position(k)] = row source.row(k) for each item k, on any execution space. `rows`: an array, or
/// another kind of rows that has in_units_of and read_in_units, see row_access.hpp.
template <class Exec, class Rows, class Out, class OutSpace, class Source, class Order = schedule::flat>
void launch_gather(const Exec& exec, const std::string& label, const Rows& rows,
                   const array_ref<Out, OutSpace>& out, const Source& source, std::int64_t items,
                   const Order& order = {}) {
  using in = std::remove_const_t<typename Rows::value_type>;
  constexpr bool moves = std::is_same_v<in, Out>;
  const std::int64_t width = out.width();
  if constexpr (is_host_exec<Exec>) {
    // Rows outside of one array need not lie whole elements apart, so they are moved in units.
    constexpr bool opaque =
        moves && (sizeof(unit_of<in>) == sizeof(in) || !std::is_base_of_v<array_shape, Rows>);
    using in_unit = std::conditional_t<opaque, unit_of<in>, in>;
    using out_unit = std::conditional_t<opaque, unit_of<in>, Out>;
    constexpr auto units = static_cast<std::int64_t>(sizeof(in) / sizeof(in_unit));
    const auto table = read_in_units(sizeof(in_unit), rows, source);
    using kernel = kernels::gather_blocks<out_unit, in_unit, std::remove_const_t<decltype(table.source)>>;
    const std::int64_t parts = (width * units + kernel::block - 1) / kernel::block;
    launch(exec, label, order, items, parts,
           kernel{reinterpret_cast<const in_unit*>(table.data), table.stride,
                  reinterpret_cast<out_unit*>(out.data), out.row_stride() * units, width * units, parts,
                  items, table.source});
  } else if constexpr (moves) {
    const bool wide = in_wide_units(rows, out);
    if (!wide && width * static_cast<std::int64_t>(sizeof(in)) >= kernels::least_chunked_bytes)
      return launch_chunks(exec, label, rows, out, source, items, order);
    const auto table = read_in_units(wide ? sizeof(kernels::opaque16) : sizeof(unit_of<in>), rows, source);
    const auto batch = in_units(out, wide);
    using source_type = std::remove_const_t<decltype(table.source)>;
    using kernel = kernels::gather_rows<unit_of<in>, source_type, schedule::covers_items<Order> ? 2 : 1>;
    const kernel move{table.data,
                      table.stride,
                      batch.data,
                      batch.stride,
                      fast_divisor(batch.width),
                      table.source,
                      items,
                      kernel::step_for(batch.width, wide),
                      wide};
    launch(exec, label, order, move.groups(), batch.width, move);
  } else {
    constexpr int packet = kernels::packed_tile_of<Out, in>::elements;
    const bool packed = in_packets<packet>(rows, out);
    const std::int64_t tiles = packed ? width / packet : kernels::tiles_of<kernels::masked_tile>(width);
    const auto table = read_in_units(sizeof(in), rows, source);
    launch(exec, label, order, items, tiles,
           kernels::convert_rows<Out, in, std::remove_const_t<decltype(table.source)>>{
               table.data, table.stride, out.data, out.row_stride(), width, fast_divisor(tiles), packed,
               table.source});
  }
}

/// A tensor of `rows` rows on a device that has an array's extents after the first.
template <class T, class Space, class Extents = dynamic_rank, std::size_t Rank = 1, class Array>
tensor<T, Space, Extents> tensor_like(const Array& array, device target, std::int64_t rows,
                                      std::string label) {
  if constexpr (Rank < max_rank)
    if (array.rank > Rank)
      return tensor_like<T, Space, Extents, Rank + 1>(array, target, rows, std::move(label));
  std::array<std::size_t, Rank> sizes;
  for (std::size_t i = 0; i < Rank; ++i) sizes[i] = static_cast<std::size_t>(array.extents[i]);
  sizes[0] = static_cast<std::size_t>(rows);
  return {std::move(label), target, sizes};
}

}  // namespace ferry::detail
