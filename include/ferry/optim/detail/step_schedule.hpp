#pragma once

#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

/// Which steps a row is given. A pace answers, for a row of the table:
///   of(row)          the update of the step that is being taken
///   missed(row)      how many steps it is behind, where `catches_up`; at(row, j) is the update of the j-th of them
///   taken(row)       notes that the row has been given the step, where `counts_rows`
namespace ferry::kernels {

/// The same update for all rows.
template <class Update>
struct global_schedule {
  using update = Update;
  static constexpr bool counts_rows = false;
  static constexpr bool catches_up = false;

  Update now;

  KOKKOS_FORCEINLINE_FUNCTION const Update& of(std::int64_t) const { return now; }

  /// run(pace), of an update whose bits are the same and that leaves out what its options leave out, where there is one.
  template <class Run>
  void visit_plain(const Run& run) const {
    if constexpr (requires { now.visit_plain([](const auto&) {}); })
      now.visit_plain(
          [&](const auto& plain) { run(global_schedule<std::remove_cvref_t<decltype(plain)>>{plain}); });
    else
      run(*this);
  }
};

/// The update of a row's own count: `updates[k]` is that of its step k + 1, the last one also that of all later steps.
template <class Update>
struct per_row_schedule {
  using update = Update;
  static constexpr bool counts_rows = true;
  static constexpr bool catches_up = false;

  const Update* updates;
  std::int64_t last;
  std::uint32_t* counts;

  KOKKOS_FORCEINLINE_FUNCTION const Update& of(std::int64_t row) const {
    const auto done = static_cast<std::int64_t>(counts[row]);
    return updates[done < last ? done : last];
  }
  KOKKOS_FORCEINLINE_FUNCTION void taken(std::int64_t row) const { ++counts[row]; }
};

/// The same of a rule whose options change: `terms[k]` is what the update of a row's step k + 1 has of the step alone, see
/// ScheduledOptimizer.
template <class Options, class Terms>
struct per_row_by_step_schedule {
  using update = decltype(std::declval<const Options&>().at(std::declval<const Terms&>()));
  static constexpr bool counts_rows = true;
  static constexpr bool catches_up = false;

  Options options;
  const Terms* terms;
  std::int64_t last;
  std::uint32_t* counts;

  KOKKOS_FORCEINLINE_FUNCTION update of(std::int64_t row) const {
    const auto done = static_cast<std::int64_t>(counts[row]);
    return options.at(terms[done < last ? done : last]);
  }
  KOKKOS_FORCEINLINE_FUNCTION void taken(std::int64_t row) const { ++counts[row]; }
};

/// One update for all rows, behind those of the steps that the row missed. `done[row]` is the step up to which the row has
/// come, `updates[k]` the update of step first + k. From step rest_from on up to the last missed one an element that
/// `resting` leaves at rest stays there.
template <class Update>
struct catch_up_schedule {
  using update = Update;
  static constexpr bool counts_rows = true;
  static constexpr bool catches_up = true;

  Update now;
  Update resting;
  const Update* updates;
  std::int64_t first;
  std::int64_t rest_from;
  std::int64_t step;  ///< the one that is being taken
  std::uint32_t* done;

  KOKKOS_FORCEINLINE_FUNCTION const Update& of(std::int64_t) const { return now; }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t missed(std::int64_t row) const {
    return step - 1 - static_cast<std::int64_t>(done[row]);
  }
  KOKKOS_FORCEINLINE_FUNCTION const Update& at(std::int64_t row, std::int64_t j) const {
    return updates[static_cast<std::int64_t>(done[row]) + 1 - first + j];
  }
  /// Missed steps of the row before those that may leave it at rest; negative where all of them may.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t before_rest(std::int64_t row) const {
    return rest_from - 1 - static_cast<std::int64_t>(done[row]);
  }
  KOKKOS_FORCEINLINE_FUNCTION void taken(std::int64_t row) const {
    done[row] = static_cast<std::uint32_t>(step);
  }
};

/// For each item of the source: its row has been given the step. A kernel of its own, because the update's threads share a
/// row and all of them read the counter.
template <class Source, class Schedule, class Transforms>
struct count_rows {
  Source source;
  Schedule schedule;
  Transforms transforms;
  const index_report* refusal;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (source.blocked() || (refusal != nullptr && refusal->nonfinite != 0)) return;
    const auto rows = source.segment(i);
    if (rows.row >= 0 && transforms.takes(rows.row)) schedule.taken(rows.row);
  }
};

}  // namespace ferry::kernels
