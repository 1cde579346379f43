// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/apply_tile.hpp>
#include <ferry/optim/detail/catch_up_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/row_weights.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// True if the device of an execution space has the memory of some spaces.
template <class Exec, class... Space>
inline constexpr bool in_memory_of_device =
    !ferry::detail::is_host_exec<Exec> && !(Space::is_host_accessible || ...);

/// One optimizer step on a row: weights and `Fields` state arrays in one pass; an operation of apply_rows.
/// The rule's apply is pure: it takes one weight, its gradient and its state, in the type Compute.
/// InDevice: a device takes the step, in its own memory.
template <class Weights, class State, class Schedule, class Transforms, int Fields, bool InDevice = false>
struct update_row {
  using weights = Weights;
  using update = typename Schedule::update;
  static constexpr int fields = Fields;
  static constexpr int arrays = 2 * (1 + Fields);
  static constexpr bool counts_rows = Schedule::counts_rows;
  static constexpr bool catches_up = Schedule::catches_up;
  static constexpr bool is_lean =
      std::is_empty_v<Transforms> && !Schedule::counts_rows && is_nearest<Weights>;

  /// Threads of a device's block, which keeps its registers until all of its rows have caught up. Blocks of
  /// one warp are not launched as fast as they end.
  static constexpr unsigned int most_threads = catches_up ? 64 : 128;
  /// Blocks for which a device's registers must suffice. Rows that miss steps wait for arithmetic as well as
  /// memory, so more of them at once count more than a few spilled numbers.
  static constexpr unsigned int blocks_of_counted_rows = (arrays <= 6 ? 8 : 6) * (128 / most_threads);

  Weights table;
  state_rows<State, Fields> state;
  Schedule schedule;
  Transforms transforms;
  const ferry::detail::index_report*
      refusal;  ///< null: gradients are not checked; else says whether one spoils the step

  /// `entry` is loaded with the row, before it is needed.
  template <class Tile, class Compute>
  struct held : row_tile<Compute, Tile, Fields> {
    [[no_unique_address]] typename Schedule::entry entry;
  };

  KOKKOS_FORCEINLINE_FUNCTION bool is_refused() const {
    return refusal != nullptr && refusal->nonfinite != 0;
  }

  /// See addressed_rows.hpp.
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void visit_rows(const Visit& visit) {
    table.visit_rows(visit);
    state.visit_rows(visit);
  }

  KOKKOS_FORCEINLINE_FUNCTION void prefetch(std::int64_t row, std::int64_t width) const {
    look_ahead::prefetch(table.data + row * table.stride,
                         width * static_cast<std::int64_t>(sizeof(*table.data)));
    for (int f = 0; f < Fields; ++f)
      look_ahead::prefetch(state.data[f] + row * state.stride,
                           width * static_cast<std::int64_t>(sizeof(State)));
  }

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void load(held<Tile, Compute>& tile, std::int64_t row, std::int64_t column,
                                        int count) const {
    if (!transforms.takes(row)) return;
    // The loads may be issued behind that of the gradient, which waits for another one.
    if constexpr (InDevice && catches_up) {
      using backend = device_backend<Compute>;
      backend::prefetch(table.data + row_offset<Tile>(row, table.stride) + column);
      for (int f = 0; f < Fields; ++f) backend::prefetch(state.template row<Tile>(f, row) + column);
    }
    tile.entry = schedule.entry_of(row);
    table.template load<Tile>(tile.weight, row, column, count);
    state.load(tile, row, column, count);
  }

  /// The steps that a row missed.
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void catch_up(row_tile<Compute, Tile, Fields>& tile, std::int64_t row,
                                            int count) const {
    if constexpr (catches_up) {
      const std::int64_t last = schedule.last_step(row), missed = schedule.missed(last);
      if (missed > 0)
        missed_steps<Fields, Schedule, Transforms, Compute, Tile>{schedule, transforms, row,
                                                                  last,     missed,     count}
            .apply(tile);
    }
  }

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void finish(held<Tile, Compute>& tile, std::int64_t, std::int64_t row,
                                          std::int64_t column, const Compute (&gradient)[Tile::elements],
                                          int count) const {
    if (!transforms.takes(row)) return;
    catch_up(tile, row, count);
    // A reference on the host, so that the values shared by all rows stay in registers.
    const std::conditional_t<Tile::host, const update&, const update> now = schedule.at(tile.entry);
    if constexpr (Transforms::is_empty) {
      apply_tile<Fields>(now, tile, gradient, count);
    } else {
      Compute step_gradient[Tile::elements];
      for (int e = 0; e < live<Tile>(count); ++e)
        step_gradient[e] = transforms.gradient(gradient[e], Compute(1));
      step_tile<Fields>(now, transforms, row, tile, step_gradient, count);
    }
    table.template store<Tile>(tile.weight, row, column, count);
    state.store(tile, row, column, count);
  }
};

}  // namespace ferry::kernels
