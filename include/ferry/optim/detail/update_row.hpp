// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/apply_tile.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/row_weights.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

/// Step schedules: which steps a row is given. A step schedule defines
///   update, entry_type   the types of an update, and of the part of a row's update that comes from memory
///   entry_of(row)        that part
///   at(entry)            the update of the present step
///   taken(row)           records that the row has been given the step, if `counts_rows`
/// and if `catches_up`
///   last_step(row)       the last step applied to the row; from it
///   missed(last)         the number of steps that the row missed
///   missed_update(last, j)
///                        the update of the j-th missed step
///   before_questions(last)
///                        the number of missed steps before the first question whether elements are dormant
///   question(last, j)    the options for a question at the j-th
namespace ferry::kernels {

/// One update for all rows.
template <class Update>
struct global_schedule {
  using update = Update;
  struct entry_type {};
  static constexpr bool counts_rows = false;
  static constexpr bool catches_up = false;

  Update now;

  KOKKOS_FORCEINLINE_FUNCTION static entry_type entry_of(std::int64_t) { return {}; }
  KOKKOS_FORCEINLINE_FUNCTION const Update& at(entry_type) const { return now; }
};

/// Updates that are their own terms, see per_row_schedule.
struct whole_updates {
  template <class Update>
  KOKKOS_FORCEINLINE_FUNCTION static const Update& at(const Update& update) {
    return update;
  }
};

/// The update by a row's own count: `terms[k]` are the step-dependent terms of the update of its step k + 1,
/// see ScheduledOptimizer, or that update as a whole. The last ones also serve all later steps.
template <class Options, class Terms>
struct per_row_schedule {
  using update =
      std::remove_cvref_t<decltype(std::declval<const Options&>().at(std::declval<const Terms&>()))>;
  using entry_type = Terms;
  static constexpr bool counts_rows = true;
  static constexpr bool catches_up = false;

  [[no_unique_address]] Options options;
  const Terms* terms;
  std::int64_t last;
  std::uint32_t* counts;

  KOKKOS_FORCEINLINE_FUNCTION const Terms& entry_of(std::int64_t row) const {
    const auto count = static_cast<std::int64_t>(counts[row]);
    return terms[count < last ? count : last];
  }
  KOKKOS_FORCEINLINE_FUNCTION decltype(auto) at(const Terms& entry) const { return options.at(entry); }
  KOKKOS_FORCEINLINE_FUNCTION void taken(std::int64_t row) const { ++counts[row]; }
};

/// One update for all rows, after those of the steps that the row missed. `counts[row]` is the last step
/// applied to the row. From step question_from on, an element that `bound` leaves at rest stays at rest until
/// the last missed step. From step same_lr_from on, the options are those of the last one.
template <class Update>
struct catch_up_schedule : global_schedule<Update> {
  static constexpr bool counts_rows = true;
  static constexpr bool catches_up = true;

  Update bound;
  const Update* updates;  ///< of the steps from `first` on
  std::int64_t first, question_from, same_lr_from;
  std::int64_t step;  ///< the present step
  std::uint32_t* counts;

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t last_step(std::int64_t row) const {
    return static_cast<std::int64_t>(counts[row]);
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t missed(std::int64_t last) const { return step - 1 - last; }
  KOKKOS_FORCEINLINE_FUNCTION const Update& missed_update(std::int64_t last, std::int64_t j) const {
    return updates[last + 1 - first + j];
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t before_questions(std::int64_t last) const {
    return question_from - 1 - last;
  }
  /// Steps with one lr change less and less.
  KOKKOS_FORCEINLINE_FUNCTION const Update& question(std::int64_t last, std::int64_t j) const {
    return last + j < same_lr_from - 1 ? bound : missed_update(last, j);
  }
  KOKKOS_FORCEINLINE_FUNCTION void taken(std::int64_t row) const {
    counts[row] = static_cast<std::uint32_t>(step);
  }
};

/// The fields of a state, of one kind: with an element for each weight, or for each row.
template <class State, int Fields>
struct state_rows {
  using value_type = State;
  static constexpr int fields = Fields;
  static constexpr int room = Fields == 0 ? 1 : Fields;

  State* data[room];
  std::int64_t stride;

  /// Arrays: those of a step, of which the first Fields are in use.
  template <class Arrays>
  static state_rows make(const Arrays& arrays) {
    state_rows rows{};
    for (int f = 0; f < Fields; ++f) {  // signed: nvcc warns about unsigned numbers below a constant zero
      rows.data[f] = arrays[static_cast<std::size_t>(f)].data;
      rows.stride = arrays[static_cast<std::size_t>(f)].row_stride();
    }
    return rows;
  }

  /// See addressed_rows.hpp.
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void visit_rows(const Visit& visit) {
    for (int f = 0; f < Fields; ++f) visit(data[f]);
  }
  template <class Tile>
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION State* row(int f, std::int64_t row) const {
    return data[f] + row_offset<Tile>(row, stride);
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void load(row_tile<Compute, Tile, Fields>& tile, std::int64_t row_number,
                                        std::int64_t column, int count) const {
    for (int f = 0; f < Fields; ++f) load_tile<Tile>(tile.field[f], row<Tile>(f, row_number) + column, count);
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void store(const row_tile<Compute, Tile, Fields>& tile, std::int64_t row_number,
                                         std::int64_t column, int count) const {
    for (int f = 0; f < Fields; ++f)
      store_tile<Tile>(tile.field[f], row<Tile>(f, row_number) + column, count);
  }
};

/// One optimizer step on a row: weights and `Fields` state arrays in one pass; an operation of apply_rows.
/// The rule's apply is pure: it takes one weight, its gradient and its state, in the type Compute.
template <class Weights, class State, class Schedule, class Transforms, int Fields>
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
    [[no_unique_address]] typename Schedule::entry_type entry;
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
    if constexpr (std::is_empty_v<Transforms>) {
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

/// Records for each item of the source that its row has been given the step of Operation, an update_row. A
/// separate kernel, because several threads of the update share a row and all of them read the counter.
template <class Source, class Operation>
struct count_rows {
  static constexpr unsigned int most_threads = 128;  ///< see launch_each
  static constexpr unsigned int blocks_at_once = 8;

  Source source;
  Operation operation;

  static std::int64_t bytes_each() { return 4 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (source.blocked() || operation.is_refused()) return;
    const auto rows = source.segment(i);
    if (rows.row >= 0 && operation.transforms.takes(rows.row)) operation.schedule.taken(rows.row);
  }
};

}  // namespace ferry::kernels
