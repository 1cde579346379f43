// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/update_row.hpp>
#include <ferry/optim/detail/update_whole_rows.hpp>
#include <ferry/quantized/detail/quantized_weights.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/rows/detail/addressed_rows.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// Moves the pointers of a step's kernels to the place of a row: see addressed_rows.hpp.
namespace ferry::kernels {

/// The weights of a row.
/// @{
template <class Weights, class Addresser, class Place>
KOKKOS_FORCEINLINE_FUNCTION void shift_weights(Weights& weights, const Addresser& rows, const Place& place) {
  shift_rows(weights, rows.table_shift(place));
}
template <class Q, bool Random, class Addresser, class Place>
KOKKOS_FORCEINLINE_FUNCTION void shift_weights(quantized_weights<Q, Random>& weights, const Addresser& rows,
                                               const Place& place) {
  shift_rows(weights.codes, rows.table_shift(place));
  if constexpr (ferry::detail::has_scale_array<Q>) shift_rows(weights.scales, rows.scale_shift(place));
}
/// @}

/// The counters of rows, if the step has any.
template <class Schedule>
KOKKOS_FORCEINLINE_FUNCTION void shift_counters(Schedule& schedule, std::int64_t bytes) {
  if constexpr (Schedule::catches_up)
    shift_rows(schedule.row_steps, bytes);
  else if constexpr (Schedule::counts_rows)
    shift_rows(schedule.counts, bytes);
}

template <class Weights, class State, class Schedule, class Transforms, int Fields, bool InDevice,
          class Addresser, class Place>
KOKKOS_FORCEINLINE_FUNCTION void address(
    update_row<Weights, State, Schedule, Transforms, Fields, InDevice>& operation, const Addresser& rows,
    const Place& place) {
  shift_rows(operation.table, rows.table_shift(place));
  for (int f = 0; f < Fields; ++f) shift_rows(operation.state[f], rows.state_shift(f, place));
  shift_counters(operation.schedule, rows.counter_shift(place));
}

template <class Compute, class Tile, class Duplicates, class Source, class Value, class Weights, class State,
          class Schedule, class Transforms, int Fields, int RowFields, class Addresser, class Place>
KOKKOS_FORCEINLINE_FUNCTION void address(
    update_whole_rows<Compute, Tile, Duplicates, Source, Value, Weights, State, Schedule, Transforms, Fields,
                      RowFields>& kernel,
    const Addresser& rows, const Place& place) {
  shift_weights(kernel.table, rows, place);
  for (int f = 0; f < Fields; ++f) shift_rows(kernel.state[f], rows.state_shift(f, place));
  for (int f = 0; f < RowFields; ++f) shift_rows(kernel.row_state[f], rows.row_state_shift(f, place));
  shift_counters(kernel.schedule, rows.counter_shift(place));
}

}  // namespace ferry::kernels
