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
#include <utility>

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
  static constexpr int room = Fields == 0 ? 1 : Fields;
  static constexpr int arrays = 2 * (1 + Fields);
  static constexpr bool counts_rows = Schedule::counts_rows;
  static constexpr bool is_lean =
      std::is_empty_v<Transforms> && !Schedule::counts_rows && is_nearest<Weights>;

  static constexpr bool catches_up = Schedule::catches_up;

  /// Threads of a device's block, which keeps its registers until all of its rows have caught up. Blocks of
  /// one warp are not launched as fast as they end.
  static constexpr unsigned int most_threads = catches_up ? 64 : 128;
  /// Blocks for which a device's registers must suffice. Rows that miss steps wait for arithmetic as well as
  /// memory, so more of them at once count more than a few spilled numbers.
  static constexpr unsigned int blocks_of_counted_rows = (arrays <= 6 ? 8 : 6) * (128 / most_threads);

  Weights table;
  State* state[room];
  std::int64_t state_stride;
  Schedule schedule;
  Transforms transforms;
  const ferry::detail::index_report*
      refusal;  ///< null: gradients are not checked; else says whether one spoils the step
  /// Neighbouring threads that hold a row and count its step, see counts_by; 0: another kernel counts it.
  unsigned int lanes_of_row = 0;

  /// The part of a row's update that a device loads with the row, before it is needed.
  struct no_entry {};
  template <class Tile>
  static consteval auto entry_in_tile() {
    if constexpr (!Tile::host && requires { &Schedule::entry_of; })
      return std::type_identity<std::remove_cvref_t<decltype(std::declval<const Schedule&>().entry_of(0))>>{};
    else
      return std::type_identity<no_entry>{};
  }
  template <class Tile>
  using entry_type = typename decltype(entry_in_tile<Tile>())::type;
  template <class Tile>
  static constexpr bool has_entry = !std::is_same_v<entry_type<Tile>, no_entry>;

  template <class Tile, class Compute>
  struct held {
    Compute weight[Tile::elements];
    Compute field[room][Tile::elements];
    [[no_unique_address]] entry_type<Tile> entry;
  };

  /// Lets the threads of a kernel of launch_each count the steps of rows, if those of a row lie in one warp:
  /// all of them read the count before one writes it. False if another kernel has to.
  bool counts_by(std::int64_t tiles) {
    constexpr std::int64_t warp = 32;
    if (!catches_up || tiles <= 0 || warp % tiles != 0) return false;
    lanes_of_row = static_cast<unsigned int>(tiles);
    return true;
  }

  KOKKOS_FORCEINLINE_FUNCTION bool is_refused() const {
    return refusal != nullptr && refusal->nonfinite != 0;
  }

  /// See addressed_rows.hpp.
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void visit_rows(const Visit& visit) {
    table.visit_rows(visit);
    for (int f = 0; f < Fields; ++f) visit(state[f]);
  }

  KOKKOS_FORCEINLINE_FUNCTION void prefetch(std::int64_t row, std::int64_t width) const {
    look_ahead::prefetch(table.data + row * table.stride,
                         width * static_cast<std::int64_t>(sizeof(*table.data)));
    for (int f = 0; f < Fields; ++f)
      look_ahead::prefetch(state[f] + row * state_stride, width * static_cast<std::int64_t>(sizeof(State)));
  }

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void load(held<Tile, Compute>& tile, std::int64_t row, std::int64_t column,
                                        int count) const {
    if (!transforms.takes(row)) return;
    // The loads may be issued behind that of the gradient, which waits for another one.
    if constexpr (InDevice && catches_up) {
      using backend = device_backend<Compute>;
      backend::prefetch(table.data + row_offset<Tile>(row, table.stride) + column);
      for (int f = 0; f < Fields; ++f) backend::prefetch(state_of<Tile>(f, row) + column);
    }
    if constexpr (has_entry<Tile>) tile.entry = schedule.entry_of(row);
    table.template load<Tile>(tile.weight, row, column, count);
    for (int f = 0; f < Fields; ++f) load_tile<Tile>(tile.field[f], state_of<Tile>(f, row) + column, count);
  }

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void finish(held<Tile, Compute>& tile, std::int64_t, std::int64_t row,
                                          std::int64_t column, const Compute (&gradient)[Tile::elements],
                                          int count) const {
    if (!transforms.takes(row)) return;
    if constexpr (Schedule::catches_up)
      catch_up_tile<Tile, Fields>(schedule, transforms, row, tile.weight, tile.field, count);
    apply(tile, row, column, gradient, count);
  }

 private:
  /// The step itself, and its stores.
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void apply(held<Tile, Compute>& tile, std::int64_t row, std::int64_t column,
                                         const Compute (&gradient)[Tile::elements], int count) const {
    using update = typename Schedule::update;
    // A reference on the host, so that the values shared by all rows stay in registers.
    const std::conditional_t<Tile::host, const update&, const update> now = update_of(tile, row);
    if constexpr (Transforms::is_empty) {
      apply_tile<Tile, Fields>(now, tile.weight, gradient, tile.field, count);
    } else {
      Compute step_gradient[Tile::elements];
      for (int e = 0; e < live<Tile>(count); ++e)
        step_gradient[e] = transforms.gradient(gradient[e], Compute(1));
      step_tile<Tile, Fields>(now, transforms, row, tile.weight, step_gradient, tile.field, count);
    }
    table.template store<Tile>(tile.weight, row, column, count);
    for (int f = 0; f < Fields; ++f) store_tile<Tile>(tile.field[f], state_of<Tile>(f, row) + column, count);
    if constexpr (catches_up && has_entry<Tile>)
      if (lanes_of_row != 0) {
        device_backend<Compute>::meet_neighbours(lanes_of_row);
        if (column == 0) schedule.taken(row);
      }
  }

  template <class Tile>
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION State* state_of(int f, std::int64_t row) const {
    return state[f] + row_offset<Tile>(row, state_stride);
  }

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION decltype(auto) update_of([[maybe_unused]] const held<Tile, Compute>& tile,
                                                       [[maybe_unused]] std::int64_t row) const {
    if constexpr (has_entry<Tile>)
      return schedule.at_entry(tile.entry);
    else
      return schedule.of(row);
  }
};

}  // namespace ferry::kernels
