// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

/// Chooses the rows of a cache: those with the highest scores, smaller row numbers
/// first; see row_score. Rows of score 0 are not chosen.
/// The result depends on counts and cached rows alone, not on the order of threads.
namespace ferry::kernels {

/// The score of a row: twice its count, plus one if it is cached. The count of a cached row gets a bonus from
/// 1 on, see row_cache::bonus. Never more than 33 bits.
KOKKOS_FORCEINLINE_FUNCTION std::uint64_t row_score(std::uint32_t count, bool cached, std::uint32_t bonus) {
  constexpr std::uint64_t largest = ~std::uint32_t{0};
  if (!cached) return std::uint64_t{count} * 2;
  const std::uint64_t more = std::uint64_t{count} + (count != 0 ? bonus : 0);
  return (more < largest ? more : largest) * 2 + 1;
}

/// Numbers that the kernels pass on, in slot_book::choice.
struct choice {
  std::uint64_t prefix;     ///< leading bits of the least score to be chosen; in the end that score
  std::uint64_t remaining;  ///< slots left for rows whose score begins with the prefix; in the end equals it
  std::uint64_t verdict;    ///< 1: the prefix is the least score; all_fit: slots suffice for all rows
  std::uint64_t above;      ///< rows to load with a higher score
  std::uint64_t equal;      ///< rows to load with that score

  static constexpr std::uint64_t all_fit = 2;
};

/// Scores have 33 bits: three digits of 11. The histogram of the first digit has a bin for each score below
/// 2048, too, because the least score is mostly one of them: the later digits then have nothing to do.
struct score_digits {
  static constexpr int bits = 11, count = detail::cache_memory::digits;
  static constexpr std::uint64_t values = std::uint64_t{1} << bits;
  static_assert(2 * values == detail::cache_memory::bins);

  int digit;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION int shift() const { return (count - 1 - digit) * bits; }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool counts(std::uint64_t score, std::uint64_t prefix) const {
    return score != 0 && (digit == 0 || score >> (shift() + bits) == prefix);
  }
  /// The bin of a score: higher scores have higher ones.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::uint64_t bin(std::uint64_t score) const {
    if (digit == 0) return score < values ? score : values + (score >> shift());
    return score >> shift() & (values - 1);
  }
};

/// Rows with neighbouring numbers, by loads of 16 bytes. Rows that a refresh announced, but did not bring
/// because it threw, are not cached.
struct row_scores {
  static constexpr int at_once = 4;
  using group = packet<std::uint32_t, at_once>;

  row_directory directory;
  const std::uint32_t* counts;
  std::uint32_t bonus;
  std::int64_t rows;

  /// The scores of a group's rows; 0 behind the last row.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION packet<std::uint64_t, at_once> group_scores(
      std::int64_t number) const {
    const std::int64_t first = number * at_once;
    group uses, slots;
    if (first + at_once <= rows) {
      uses = reinterpret_cast<const group*>(counts)[number];
      slots = reinterpret_cast<const group*>(directory.slot_of)[number];
    } else {
      for (int k = 0; k < at_once; ++k) {
        const bool is_row = first + k < rows;
        uses.value[k] = is_row ? counts[first + k] : 0;
        slots.value[k] = is_row ? directory.slot_of[first + k] : 0;
      }
    }
    packet<std::uint64_t, at_once> scores;
    for (int k = 0; k < at_once; ++k)
      scores.value[k] = row_score(uses.value[k], directory.is_cached(slots.value[k]), bonus);
    return scores;
  }
};

/// Adds rows to the histogram of one digit of their scores. Teams of a device count in shared memory first,
/// and host threads on their stacks.
struct tally_scores {
  static constexpr bool takes_runs = true;
  static constexpr int team_size = 512;
  static constexpr std::int64_t bins = detail::cache_memory::bins;
  struct tally {
    std::uint32_t rows[bins];
  };

  row_scores scores;
  const choice* previous;
  std::uint32_t* histogram;
  std::int64_t groups;
  std::int64_t teams;
  score_digits digit;

  void operator()(const detail::host_run& run) const {
    if (previous->verdict != 0) return;
    tally bin_counts{};
    const std::int64_t end = run.end(groups);
    for (std::int64_t g = run.begin(groups); g < end; ++g)
      for (const std::uint64_t score : scores.group_scores(g).value)
        if (digit.counts(score, previous->prefix)) ++bin_counts.rows[digit.bin(score)];
    for (std::int64_t bin = 0; bin < bins; ++bin)
      if (bin_counts.rows[bin] != 0) Kokkos::atomic_add(histogram + bin, bin_counts.rows[bin]);
  }
  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    if (previous->verdict != 0) return;
    auto& bin_counts = team.template shared<tally>();
    const int rank = team.team_rank();
    for (std::int64_t bin = rank; bin < bins; bin += team_size) bin_counts.rows[bin] = 0;
    team.team_barrier();
    const std::uint64_t prefix = previous->prefix;
    for (std::int64_t g = std::int64_t{team.league_rank()} * team_size + rank; g < groups;
         g += teams * team_size)
      for (const std::uint64_t score : scores.group_scores(g).value)
        if (digit.counts(score, prefix))
          Kokkos::atomic_add(&bin_counts.rows[digit.bin(score)], std::uint32_t{1});
    team.team_barrier();
    for (std::int64_t bin = rank; bin < bins; bin += team_size)
      if (bin_counts.rows[bin] != 0) Kokkos::atomic_add(histogram + bin, bin_counts.rows[bin]);
  }
};

/// A scan over the bins, those of the highest scores first: finds the digit of the least score to be chosen.
/// A single thread would wait for the load of each bin in turn.
struct pick_digit {
  using value_type = std::uint64_t;

  const std::uint32_t* histogram;
  const choice* previous;
  choice* result;  ///< not previous, which other threads read
  score_digits digit;

  KOKKOS_FUNCTION void operator()(std::int64_t index, std::uint64_t& above, bool last_pass) const {
    constexpr std::int64_t bins = detail::cache_memory::bins;
    const std::int64_t bin = bins - 1 - index;
    const std::uint64_t rows = histogram[bin];
    if (last_pass) {
      if (previous->verdict != 0) {
        if (index == 0) *result = *previous;
      } else {
        const std::uint64_t remaining = previous->remaining;
        const bool enough = above + rows >= remaining;
        if (enough && (index == 0 || above < remaining))
          *result = next(static_cast<std::uint64_t>(bin), remaining - above);
        else if (!enough && bin == 0)  // the first digit: the later ones count the rows of one bin
          *result = {0, remaining, choice::all_fit, 0, 0};
      }
    }
    above += rows;
  }

 private:
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION choice next(std::uint64_t bin, std::uint64_t remaining) const {
    constexpr std::uint64_t values = score_digits::values;
    if (digit.digit != 0) {
      const std::uint64_t last = digit.digit == score_digits::count - 1 ? 1 : 0;
      return {previous->prefix << score_digits::bits | bin, remaining, last, 0, 0};
    }
    return bin < values ? choice{bin, remaining, 1, 0, 0} : choice{bin - values, remaining, 0, 0, 0};
  }
};

struct clear_choice {
  choice* result;
  std::uint64_t slots;
  KOKKOS_FUNCTION void operator()(std::int64_t) const { *result = {0, slots, 0, 0, 0}; }
};

/// The slots get the rows that they hold; the next kernel empties those whose rows leave.
struct keep_rows {
  const std::int64_t* current_rows;
  std::int64_t* next_rows;
  KOKKOS_FUNCTION void operator()(std::int64_t slot) const { next_rows[slot] = current_rows[slot]; }
};

/// A scan over runs of rows: lists those to load, and empties the slots of those that leave. Rows of the least
/// score either are all cached or none is, because the score says so. Runs, because a scan takes longer over
/// its items than their loads do.
///
/// racecheck warns of write-write hazards in this scan, as in any of Kokkos 4's scans over a value of more
/// than 8 bytes: in ParallelScan::final a thread initialises the block's first prefix, and threads of its
/// warp then write words of it without __syncwarp. They write after it, because the warp has just left
/// __syncthreads.
struct list_rows {
  static constexpr std::int64_t groups_per_run = 4;
  struct sums {
    std::int64_t above, equal;
  };
  using value_type = sums;

  row_scores scores;
  choice* result;
  std::int64_t* next_rows;
  std::int64_t* entering;
  std::int64_t slots;
  std::int64_t runs;

  KOKKOS_FUNCTION static void init(sums& value) { value = {0, 0}; }
  KOKKOS_FUNCTION static void join(sums& value, const sums& addend) {
    value.above += addend.above;
    value.equal += addend.equal;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t run, sums& value, bool last_pass) const {
    const bool all_fit = result->verdict == choice::all_fit;
    const std::uint64_t least = result->prefix, remaining = result->remaining;
    for (std::int64_t g = run * groups_per_run; g < (run + 1) * groups_per_run; ++g) {
      const auto group = scores.group_scores(g);
      for (int k = 0; k < row_scores::at_once; ++k) {
        const std::uint64_t score = group.value[k];
        if (score == 0) continue;
        const std::int64_t row = g * row_scores::at_once + k;
        const bool above = all_fit || score > least, equal = !all_fit && score == least;
        const bool chosen = above || (equal && static_cast<std::uint64_t>(value.equal) < remaining);
        if ((score & 1) != 0) {
          if (last_pass && !chosen) next_rows[scores.directory.find(row)] = 0;
        } else if (last_pass && chosen) {
          entering[above ? value.above : slots - 1 - value.equal] = row + 1;
        }
        if (above && (score & 1) == 0) ++value.above;
        if (equal) ++value.equal;
      }
    }
    if (last_pass && run == runs - 1) {
      result->above = static_cast<std::uint64_t>(value.above);
      const auto matches = static_cast<std::uint64_t>(value.equal);
      const bool any = !all_fit && (least & 1) == 0;
      result->equal = !any ? 0 : matches < remaining ? matches : remaining;
    }
  }
};

/// A scan over the slots: the empty ones get the rows to load, in order.
struct fill_slots {
  using value_type = std::int64_t;

  const choice* result;
  const std::int64_t* entering;
  std::int64_t* next_rows;
  std::int64_t slots;

  KOKKOS_FUNCTION void operator()(std::int64_t slot, std::int64_t& empty, bool last_pass) const {
    // Slots that get a row in the last pass were empty in the first, which counts them.
    if (next_rows[slot] != 0) return;
    if (last_pass) {
      const auto above = static_cast<std::int64_t>(result->above);
      const auto equal = static_cast<std::int64_t>(result->equal);
      if (empty < above)
        next_rows[slot] = entering[empty];
      else if (empty < above + equal)
        next_rows[slot] = entering[slots - 1 - (empty - above)];
    }
    ++empty;
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Enqueues the scan over [0, count).
template <class Exec, class Functor>
void launch_scan(const Exec& exec, const std::string& label, std::int64_t count, const Functor& functor) {
  if constexpr (is_host_exec<Exec>) require_own_kokkos(exec, label);
  using range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  [[maybe_unused]] const auto launching = execution_backend<Exec>::template lock_launch<Functor>();
  Kokkos::parallel_scan(label, range(exec, 0, count), functor);
}

/// Adds the rows of a digit to its histogram.
template <class Exec>
void tally_scores(const Exec& exec, const std::string& label, kernels::tally_scores kernel) {
  if constexpr (is_host_exec<Exec>) {
    launch(exec, label, kernel.groups, kernel);
  } else {
    constexpr std::int64_t most_teams = 1024;
    kernel.teams = std::min(most_teams, (kernel.groups + kernel.team_size - 1) / kernel.team_size);
    const tool_kernel reported(exec, label);
    execution_backend<Exec>::launch_blocks(exec, label, static_cast<int>(kernel.teams), kernel.team_size,
                                           kernel);
  }
}

/// Sets `next_rows`: the row that each slot is to hold.
template <class Exec>
void choose_rows(launch_context<Exec>& call, const row_cache& cache) {
  const Exec& exec = call.exec();
  const cache_memory& memory = cache.memory;
  const slot_book& book = memory.book;
  const std::int64_t slots = memory.slots, rows = cache.rows;
  if (rows == 0) return;
  const std::string& label = call.label("cached", "choose");
  const kernels::row_scores scores{book.directory, cache.counts.data(), cache.bonus(), rows};
  constexpr int digits = kernels::score_digits::count;
  static_assert((digits + 1) * sizeof(kernels::choice) <= cache_memory::choice_words * sizeof(std::uint64_t));
  auto* result = reinterpret_cast<kernels::choice*>(book.choice);  // each digit's comes after the last one's
  constexpr std::int64_t at_once = kernels::row_scores::at_once;
  const std::int64_t groups = (rows + at_once - 1) / at_once;
  launch(exec, label, 1, kernels::clear_choice{result, static_cast<std::uint64_t>(slots)});
  launch(exec, label, cache_memory::digits * cache_memory::bins,
         kernels::clear_numbers<std::uint32_t>{book.histogram});
  for (int digit = 0; digit < digits; ++digit, ++result) {
    auto* histogram = book.histogram + digit * cache_memory::bins;
    tally_scores(exec, label, {scores, result, histogram, groups, 0, {digit}});
    launch_scan(exec, label, cache_memory::bins, kernels::pick_digit{histogram, result, result + 1, {digit}});
  }
  launch(exec, label, slots, kernels::keep_rows{book.current_rows, book.next_rows});
  const std::int64_t runs =
      (groups + kernels::list_rows::groups_per_run - 1) / kernels::list_rows::groups_per_run;
  launch_scan(exec, label, runs,
              kernels::list_rows{scores, result, book.next_rows, book.entering, slots, runs});
  launch_scan(exec, label, slots, kernels::fill_slots{result, book.entering, book.next_rows, slots});
}

}  // namespace ferry::detail
