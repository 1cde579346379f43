// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

/// Step schedules: which steps a row is given. A step schedule defines
///   update, entry        the types of an update, and of the part of a row's update that comes from memory
///   entry_of(row)        that part
///   at(entry)            the update of the present step
///   taken(row)           records that the row has been given the step, if `counts_rows`
/// and if `catches_up`
///   last_step(row)       the last step applied to the row; from it
///   missed(last)         the number of steps that the row missed
///   missed_update(last, j)
///                        the update of the j-th missed step
///   before_rest(last)    the number of missed steps before the first question whether elements are dormant
///   question(last, j)    the options for a question at the j-th
namespace ferry::kernels {

/// One update for all rows.
template <class Update>
struct global_schedule {
  using update = Update;
  struct entry {};
  static constexpr bool counts_rows = false;
  static constexpr bool catches_up = false;

  Update now;

  KOKKOS_FORCEINLINE_FUNCTION static entry entry_of(std::int64_t) { return {}; }
  KOKKOS_FORCEINLINE_FUNCTION const Update& at(entry) const { return now; }
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
  using entry = Terms;
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
/// applied to the row. From step rest_from on, an element that `resting` leaves at rest stays at rest until
/// the last missed step. From step steady_from on, the options are those of the last one.
template <class Update>
struct catch_up_schedule : global_schedule<Update> {
  static constexpr bool counts_rows = true;
  static constexpr bool catches_up = true;

  Update resting;
  const Update* updates;  ///< of the steps from `first` on
  std::int64_t first, rest_from, steady_from;
  std::int64_t step;  ///< the present step
  std::uint32_t* counts;

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t last_step(std::int64_t row) const {
    return static_cast<std::int64_t>(counts[row]);
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t missed(std::int64_t last) const { return step - 1 - last; }
  KOKKOS_FORCEINLINE_FUNCTION const Update& missed_update(std::int64_t last, std::int64_t j) const {
    return updates[last + 1 - first + j];
  }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t before_rest(std::int64_t last) const {
    return rest_from - 1 - last;
  }
  /// Steps with one lr change less and less.
  KOKKOS_FORCEINLINE_FUNCTION const Update& question(std::int64_t last, std::int64_t j) const {
    return last + j < steady_from - 1 ? resting : missed_update(last, j);
  }
  KOKKOS_FORCEINLINE_FUNCTION void taken(std::int64_t row) const {
    counts[row] = static_cast<std::uint32_t>(step);
  }
};

/// Records for each item of the source that its row has been given the step. A separate kernel, because
/// several threads of the update share a row and all of them read the counter.
template <class Source, class Schedule, class Transforms>
struct count_rows {
  static constexpr unsigned int most_threads = 128;  ///< see launch_each
  static constexpr unsigned int blocks_at_once = 8;

  Source source;
  Schedule schedule;
  Transforms transforms;
  const ferry::detail::index_report* refusal;

  static std::int64_t bytes_each() { return 4 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (source.blocked() || (refusal != nullptr && refusal->nonfinite != 0)) return;
    const auto rows = source.segment(i);
    if (rows.row >= 0 && transforms.takes(rows.row)) schedule.taken(rows.row);
  }
};

}  // namespace ferry::kernels
