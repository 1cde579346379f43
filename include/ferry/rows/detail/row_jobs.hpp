#pragma once

#include <ferry/concepts/policy.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_operations.hpp>
#include <ferry/rows/detail/row_tiles.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <cstdint>
#include <type_traits>

/// The jobs of scatter and scatter_add; step's stands with its verb. See update_rows.hpp for what a job is.
namespace ferry::detail {

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

/// The type in which rows of values V are combined on their way into a table of T: the wider accumulation
/// type; among integers that of the values, whose sign a mean needs; double where a float meets an integer.
template <class T, class V>
using combine_type = typename decltype(combining<T, V>())::type;

/// Writes the combined value of each item into a dense buffer: the device's share of the staged path.
template <class Wire, bool Moves>
struct reduce_to_buffer {
  array_ref<Wire, device_space> table;

  template <class Exec, class Value>
  using sum_type = Wire;

  template <class Exec, class Duplicates, class Value, class Space, class Run>
  void visit(const array_ref<Value, Space>& values, const Run& run) const {
    if constexpr (Moves)
      visit_units<is_host_exec<Exec>>(table, values, run, [](auto* to, std::int64_t stride) {
        return kernels::emit_row<std::remove_pointer_t<decltype(to)>>{to, stride};
      });
    else
      visit_tiles<is_host_exec<Exec>, Wire>(in_packets<4>(table, values), run,
                                            kernels::emit_row<Wire>{table.data, table.row_stride()},
                                            values.data, values.row_stride(), values.width());
  }
};

/// table[row] = combined value.
template <class T, class TableSpace>
struct replace_job {
  array_ref<T, TableSpace> table;

  template <class Value, class Duplicates>
  static constexpr bool moves = std::is_same_v<T, std::remove_const_t<Value>> && !Duplicates::combines;
  template <class Value, class Duplicates>
  using wire_type = std::conditional_t<moves<Value, Duplicates>, Value, combine_type<T, Value>>;
  template <class Exec, class Value>
  using sum_type = combine_type<T, Value>;
  template <class Value>
  static constexpr bool replaces_by = std::is_same_v<T, Value>;

  template <class Value, class Duplicates, class Wire>
  auto emit(Wire* buffer, std::int64_t items, std::int64_t width) const {
    return reduce_to_buffer<Wire, moves<Value, Duplicates>>{
        dense_rows<Wire, device_space>(buffer, items, width, "combined")};
  }

  template <class Exec, class Duplicates, class Value, class Space, class Run>
  void visit(const array_ref<Value, Space>& values, const Run& run) const {
    if constexpr (moves<Value, Duplicates>)
      visit_units<is_host_exec<Exec>>(table, values, run, [](auto* to, std::int64_t stride) {
        return kernels::replace_row<std::remove_pointer_t<decltype(to)>>{to, stride};
      });
    else
      visit_tiles<is_host_exec<Exec>, combine_type<T, std::remove_const_t<Value>>>(
          in_packets<4>(table, values), run, kernels::replace_row<T>{table.data, table.row_stride()},
          values.data, values.row_stride(), values.width());
  }

  template <class Check>
  void for_each_array(const Check& check) const {
    check(table);
  }
};

/// table[row] += combined value.
template <class T, class TableSpace>
struct add_job {
  array_ref<T, TableSpace> table;

  template <class Value, class Duplicates>
  using wire_type = combine_type<T, Value>;
  template <class Exec, class Value>
  using sum_type = combine_type<T, Value>;
  template <class>
  static constexpr bool replaces_by = false;

  template <class Value, class Duplicates, class Wire>
  auto emit(Wire* buffer, std::int64_t items, std::int64_t width) const {
    return reduce_to_buffer<Wire, false>{dense_rows<Wire, device_space>(buffer, items, width, "combined")};
  }

  template <class Exec, class Duplicates, class Value, class Space, class Run>
  void visit(const array_ref<Value, Space>& values, const Run& run) const {
    visit_tiles<is_host_exec<Exec>, combine_type<T, std::remove_const_t<Value>>>(
        in_packets<4>(table, values), run, kernels::add_row<T>{table.data, table.row_stride()}, values.data,
        values.row_stride(), values.width());
  }

  template <class Check>
  void for_each_array(const Check& check) const {
    check(table);
  }
};

}  // namespace ferry::detail
