// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/int8/detail/rowwise_int8_weights.hpp>
#include <ferry/optim/detail/update_row.hpp>
#include <ferry/rows/detail/row_weights.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// Moves the pointers of a kernel such that the address of a row is that of its slot.
namespace ferry::kernels {

/// From a row of an array in host memory to its slot, in bytes.
struct row_shift {
  std::int64_t base = 0;    ///< from row 0 to slot 0
  std::int64_t stride = 0;  ///< 0 for an array that is not cached

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t of(std::int64_t row, std::int64_t slot) const {
    return base + (slot - row) * stride;
  }
};

template <class T>
KOKKOS_FORCEINLINE_FUNCTION void shift_rows(T*& rows, std::int64_t bytes) {
  rows = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(rows) + static_cast<std::uintptr_t>(bytes));
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void shift_rows(nearest_weights<T>& weights, std::int64_t bytes) {
  shift_rows(weights.data, bytes);
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void shift_rows(stochastic_weights<T>& weights, std::int64_t bytes) {
  shift_rows(weights.data, bytes);
}
template <bool Random>
KOKKOS_FORCEINLINE_FUNCTION void shift_rows(rowwise_int8_weights<Random>& weights, std::int64_t bytes) {
  shift_rows(weights.records, bytes);
}

/// The counters of rows, if the step has any.
template <class Schedule>
KOKKOS_FORCEINLINE_FUNCTION void shift_counters(Schedule& schedule, std::int64_t bytes) {
  if constexpr (Schedule::catches_up)
    shift_rows(schedule.row_steps, bytes);
  else if constexpr (Schedule::counts_rows)
    shift_rows(schedule.counts, bytes);
}

/// The shifts of a kernel's arrays.
template <int Fields, int RowFields>
struct row_shifts {
  row_shift table;
  row_shift state[Fields == 0 ? 1 : Fields];
  row_shift row_state[RowFields == 0 ? 1 : RowFields];
  row_shift row_steps;
};

template <class Operation, class Shifts>
KOKKOS_FORCEINLINE_FUNCTION void shift_operation(Operation& operation, const Shifts& by, std::int64_t row,
                                                 std::int64_t slot) {
  shift_rows(operation.table, by.table.of(row, slot));
}
template <class Weights, class State, class Schedule, class Transforms, int Fields, class Shifts>
KOKKOS_FORCEINLINE_FUNCTION void shift_operation(
    update_row<Weights, State, Schedule, Transforms, Fields>& operation, const Shifts& by, std::int64_t row,
    std::int64_t slot) {
  shift_rows(operation.table, by.table.of(row, slot));
  for (int f = 0; f < Fields; ++f) shift_rows(operation.state[f], by.state[f].of(row, slot));
  shift_counters(operation.schedule, by.row_steps.of(row, slot));
}

}  // namespace ferry::kernels
