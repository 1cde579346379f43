// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/apply_rows.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <cstdint>
#include <type_traits>

/// The kernels of jobs, for one of three tiles: kernels::host_tile on the host; on a device packed_tile if
/// alignment allows it, else the job's loose_tile.
namespace ferry::detail {

template <class Value, class Space>
const Value* const_data(const array_ref<Value, Space>& values) {
  return values.data;
}

/// Combines values in Compute and applies `operation` to each row.
template <class Compute, class Tile, class Duplicates, class Source, class Value, class Operation>
auto apply_kernel(const Source& source, std::int64_t items, const Value* values, std::int64_t stride,
                  std::int64_t width, const Operation& operation) {
  const std::int64_t tiles = Tile::host ? 1 : kernels::tiles_of<Tile>(width);
  return kernels::apply_rows<Compute, Tile, Duplicates, Source, Value, Operation>{
      source, values, stride, width, items, fast_divisor(tiles), operation};
}

/// Moves rows as opaque units, by Operation<unit>{data, stride}. A packed tile is one unit of 16 bytes.
template <template <class> class Operation, class Tile, class Duplicates, class Source, class To,
          class Values>
auto move_kernel(const Source& source, std::int64_t items, const To& table, const Values& values) {
  using element = std::remove_cvref_t<decltype(*table.data)>;
  using unit = std::conditional_t<Tile::packed, kernels::opaque16, unit_of<element>>;
  using tile = std::conditional_t<Tile::packed, kernels::single_tile, Tile>;
  const auto rows = as_units<unit>(table);
  const auto inputs = as_units<unit>(values);
  const auto* data = static_cast<const unit*>(inputs.data);
  return apply_kernel<unit, tile, Duplicates>(source, items, data, inputs.stride, rows.width,
                                              Operation<unit>{rows.data, rows.stride});
}

}  // namespace ferry::detail
