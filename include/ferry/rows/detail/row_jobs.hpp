// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/apply_rows.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_operations.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <cstdint>
#include <string>
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
  const auto rows = in_units(table, Tile::packed);
  const auto inputs = in_units(values, Tile::packed);
  return apply_kernel<unit, tile, Duplicates>(source, items, static_cast<const unit*>(inputs.data),
                                              inputs.stride, rows.width,
                                              Operation<unit>{static_cast<unit*>(rows.data), rows.stride});
}

// The jobs of scatter and scatter_add, see launch_update.hpp. The job of step is in
// optim/detail/update_job.hpp.

template <class T, class V>
consteval auto combining() {
  using table = accumulation_t<T>;
  using value = accumulation_t<V>;
  if constexpr (std::is_integral_v<table> && std::is_integral_v<value>)
    return std::type_identity<value>{};
  else if constexpr (std::is_integral_v<table> != std::is_integral_v<value>)
    return std::type_identity<double>{};
  else
    return std::type_identity<std::common_type_t<table, value>>{};
}

/// The type in which values of type V are combined on their way into a table of T: the wider of the two
/// accumulation types. Among integers it is that of the values, whose sign a mean needs. A float and an
/// integer give double.
template <class T, class V>
using combine_type = typename decltype(combining<T, V>())::type;

/// The job of an operation without state: Operation<T>{data, stride} on each row of a table of T and its
/// combined value.
template <class T, class TableSpace, template <class> class Operation>
struct row_job {
  static constexpr int min_fields = 0, max_fields = 0, fields = 0, most_row_arrays = 1;
  static constexpr bool needs_whole_rows = false, counts_rows = false, catches_up = false;
  static constexpr bool adds = kernels::adds_value<Operation<T>>;
  static constexpr bool writes_scratch = std::is_same_v<Operation<T>, kernels::emit_row<T>>;
  template <class Value, class Duplicates>
  static constexpr bool moves =
      !adds && std::is_same_v<T, std::remove_const_t<Value>> && !Duplicates::combines;
  template <class Value>
  static constexpr bool replaces_by = !adds && !writes_scratch && std::is_same_v<T, Value>;
  /// Atomic additions take whole tiles.
  template <class Duplicates, class Source>
  static constexpr bool adds_atomically = adds&& in_any_order<Duplicates>&& kernels::by_positions<Source>;
  template <class Duplicates, class Source>
  static constexpr bool takes_masks = !adjusts_values<Duplicates> && !adds_atomically<Duplicates, Source>;
  template <class>
  static constexpr bool takes_wide_tiles = false;
  template <class Value>
  using packed_tile = kernels::packed_tile_of<T, std::remove_const_t<Value>>;
  template <class Exec, class Value>
  using sum_type = std::conditional_t<writes_scratch, T, combine_type<T, Value>>;
  template <class Value, class Duplicates>
  using wire_type = std::conditional_t<moves<Value, Duplicates>, Value, combine_type<T, Value>>;

  array_ref<T, TableSpace> table;

  explicit row_job(const array_ref<T, TableSpace>& array) : table(array) {}

  [[nodiscard]] static bool is_refused() { return false; }
  void for_each_array(const auto& check) const { check(table); }
  static void for_each_row_array(const auto&) {}

  template <bool Staged, class Exec, class Values>
  [[nodiscard]] const row_job& prepare(launch_context<Exec>&, const std::string&, const Values&) const {
    return *this;
  }
  template <class Value, class Duplicates, class Wire>
  [[nodiscard]] auto emit(Wire* buffer, std::int64_t items, std::int64_t width) const {
    return row_job<Wire, device_space, kernels::emit_row>(
        dense_rows<Wire, device_space>(buffer, items, width, "combined"));
  }
  template <class Duplicates, class Values>
  [[nodiscard]] bool packs(const Values& values) const {
    if constexpr (moves<typename Values::value_type, Duplicates>)
      return in_wide_units(table, values);
    else
      return in_packets<packed_tile<typename Values::value_type>::elements>(table, values);
  }

  template <class Exec, class Duplicates, class Tile, int, class Source, class Values>
  [[nodiscard]] auto kernel(const Source& source, std::int64_t items, const Values& values) const {
    using value = typename Values::value_type;
    using sum = sum_type<Exec, std::remove_const_t<value>>;
    using compute = std::conditional_t<writes_scratch, combining_number<Exec, Duplicates, sum>, sum>;
    const auto kernel_of = [&](const auto& operation) {
      return apply_kernel<compute, Tile, Duplicates>(source, items, const_data(values), values.row_stride(),
                                                     values.width(), operation);
    };
    if constexpr (moves<value, Duplicates>)
      return move_kernel<Operation, Tile, Duplicates>(source, items, table, values);
    else if constexpr (adds_atomically<Duplicates, Source> && !is_host_exec<Exec>)
      return kernel_of(kernels::add_atomically<execution_backend<Exec>, T, kernels::unscaled>(
          table.data, table.row_stride(), {}, nullptr));
    else
      return kernel_of(Operation<T>{table.data, table.row_stride()});
  }
};

/// table[row] = combined value.
template <class T, class TableSpace>
using replace_job = row_job<T, TableSpace, kernels::replace_row>;
/// table[row] += combined value.
template <class T, class TableSpace>
using add_job = row_job<T, TableSpace, kernels::add_row>;

}  // namespace ferry::detail
