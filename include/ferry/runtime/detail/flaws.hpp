// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The flaws of arguments, and their sentences.
namespace ferry::detail {

enum class flaw {
  none,
  call,  ///< an argument is missing or in another position
  no_execution_space,
  late_execution_space,
  early_policy,
  no_policy,
  no_array,
  no_elements,
  no_indices,
  no_index_array,
  braced_indices,
  no_offsets,
  no_rule,
  no_states,
  one_table,
  table_range,
  quantized,
  read_only,
  constant,
  temporary
};

/// Fails with one sentence, which is the first message of the compiler. `Subject` and `Arguments` are the
/// call that fails, because a compiler prints a message once for each.
template <flaw Found, class Subject, class... Arguments>
consteval void fail_with() {
  static_assert(
      Found != flaw::no_execution_space,
      "ferry: the first argument of a verb must be an instance of a Kokkos execution space, Kokkos::DefaultExecutionSpace{} say.");
  static_assert(
      Found != flaw::late_execution_space,
      "ferry: the instance of the execution space comes first, before table, indices and batch: verb(exec, table, ...).");
  static_assert(
      Found != flaw::early_policy,
      "ferry: policies such as path::direct{} are the last arguments of a verb, after all arrays and numbers.");
  static_assert(
      Found != flaw::no_policy,
      "ferry: the trailing arguments must be policies: path::*, bounds::*, duplicates::*, for a step also step_count::*, rounding::*, nonfinite::*, or a policies<...> bundle of them.");
  static_assert(
      Found != flaw::no_array,
      "ferry: tables and batches must be a ferry::tensor, a tensor_view, a Kokkos::View, a std::span, a std::vector, a std::array, or a type with ferry::array_traits; for a pointer, a unique_ptr or an mdspan give ferry::tensor_view(pointer, rows, width), or ferry::tensor_view<T, Space>(pointer, rows, width) where the memory is no ordinary host memory, for a Kokkos::DualView one of its two views. <ferry/interop/mdspan.hpp>, dual_view.hpp and eigen.hpp make arrays of mdspans, DualViews and Eigen's matrices.");
  static_assert(
      Found != flaw::no_elements,
      "ferry: the elements of an array must be trivially copyable, because verbs copy their bytes: numbers, or structs of numbers. A std::string or a std::vector owns memory; of a std::vector of std::vectors make one array of rows, ferry::tensor_view(pointer, rows, width).");
  static_assert(
      Found != flaw::no_indices,
      "ferry: the indices must be a row_plan, or a rank-1 array of int32, uint32, int64 or uint64.");
  static_assert(
      Found != flaw::no_index_array,
      "ferry: the indices must be a row_plan, or a rank-1 array of int32, uint32, int64 or uint64: a std::vector, a std::span, a std::array, a Kokkos::View or a ferry::tensor; for a pointer, a unique_ptr or an mdspan give ferry::tensor_view(pointer, count), as for a table ferry::tensor_view(pointer, rows, width).");
  static_assert(
      Found != flaw::braced_indices,
      "ferry: the indices must be an array with a name for its type: write std::array{1, 2, 3} in place of {1, 2, 3}.");
  static_assert(
      Found != flaw::no_offsets,
      "ferry: the offsets of bags must be a rank-1 array of int32, uint32, int64 or uint64, or the number of positions that every bag has.");
  static_assert(
      Found != flaw::no_rule,
      "ferry: the verb needs an optimizer rule, ferry::optim::adam say; one of your own has the members name, min_fields, fields(), check() and coefficients<C>(step), which returns the update of a step, see ferry::Optimizer.");
  static_assert(
      Found != flaw::no_states,
      "ferry: step_bags over for_each_table takes a range of states, one for each table in their order: a std::vector or a std::array of what make_state returns.");
  static_assert(
      Found != flaw::one_table,
      "ferry: the tables of for_each_table serve gather_bags, step_bags and copy_rows alone; call other verbs once for each table.");
  static_assert(
      Found != flaw::table_range,
      "ferry: a range of tables is no table: gather_bags, step_bags and copy_rows take one as for_each_table(range); call other verbs once for each table.");
  static_assert(
      Found != flaw::quantized,
      "ferry: this argument must be an array of numbers, not a table of quantized rows; quantize(exec, numbers, table) writes such a table, and dequantize(exec, table, numbers) reads it.");
  static_assert(Found != flaw::read_only,
                "ferry: the verb writes to this array, but its elements are const.");
  static_assert(Found != flaw::constant,
                "ferry: the verb writes to this table, state or records, so it must not be const.");
  static_assert(
      Found != flaw::temporary,
      "ferry: the verb writes to a temporary table, state or records, which ends while the work may be in flight; keep it in a variable.");
}

}  // namespace ferry::detail
