// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/require_process.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>

/// Chooses the rows of a cache with a dense directory: those with the highest scores, smaller row numbers
/// first; see row_score. Rows of score 0 are not chosen.
/// The result depends on counts and cached rows alone, not on the order of threads.
namespace ferry::kernels {

/// The score of a row: twice its count, plus one if it is cached. The count of a cached row gets a bonus, see
/// row_cache::bonus. Never more than 33 bits.
KOKKOS_FORCEINLINE_FUNCTION std::uint64_t row_score(std::uint32_t count, bool cached, std::uint32_t bonus) {
  constexpr std::uint64_t largest = ~std::uint32_t{0};
  if (!cached) return std::uint64_t{count} * 2;
  const std::uint64_t more = std::uint64_t{count} + (count >= detail::row_cache::of_late ? bonus : 0);
  return (more < largest ? more : largest) * 2 + 1;
}

/// Numbers that the kernels pass on, in slot_book::choice.
struct choice {
  std::uint64_t prefix;     ///< leading bits of the least score to be chosen; in the end that score
  std::uint64_t remaining;  ///< slots left for rows whose score begins with the prefix; in the end equals it
  std::uint64_t fits_all;   ///< 1: there are slots for all rows with a score
  std::uint64_t above;      ///< rows to load with a higher score
  std::uint64_t equal;      ///< rows to load with that score
};

/// Scores have 33 bits: three digits of 11.
struct score_digits {
  static constexpr int bits = 11, count = 3;

  KOKKOS_FORCEINLINE_FUNCTION static int shift(int digit) { return (count - 1 - digit) * bits; }
};

struct row_scores {
  dense_directory directory;
  const std::uint32_t* counts;
  std::uint32_t bonus;  ///< of cached rows

  KOKKOS_FORCEINLINE_FUNCTION std::uint64_t score(std::int64_t row) const {
    return row_score(counts[row], directory.find(row) >= 0, bonus);
  }
};

/// Adds rows to the histogram of one digit of their scores. A thread takes rows at equal distances and adds
/// runs of equal digits at once. The copies of the histogram spread the additions.
struct tally_scores {
  static constexpr std::int64_t rows_per_thread = 16;

  row_scores scores;
  const choice* so_far;
  std::uint32_t* histogram;
  std::int64_t rows;
  std::int64_t threads;
  int digit;

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    constexpr std::int64_t bins = detail::cache_memory::bins;
    std::uint32_t* bin_counts = histogram + thread % detail::cache_memory::copies * bins;
    const int shift = score_digits::shift(digit);
    std::uint64_t last = 0;
    std::uint32_t run = 0;
    for (std::int64_t row = thread; row < rows; row += threads) {
      const std::uint64_t score = scores.score(row);
      if (score == 0 || score >> (shift + score_digits::bits) != so_far->prefix) continue;
      const std::uint64_t bin = score >> shift & (bins - 1);
      if (bin != last && run != 0) {
        Kokkos::atomic_add(bin_counts + last, run);
        run = 0;
      }
      last = bin;
      ++run;
    }
    if (run != 0) Kokkos::atomic_add(bin_counts + last, run);
  }
};

/// A scan over the bins, those of the highest scores first: finds the digit of the least score to be chosen.
/// A single thread would wait for the load of each bin in turn.
struct pick_digit {
  using value_type = std::uint64_t;

  const std::uint32_t* histogram;
  const choice* so_far;
  choice* result;  ///< not so_far, which other threads read

  KOKKOS_FUNCTION void operator()(std::int64_t place, std::uint64_t& above, bool last_pass) const {
    constexpr std::int64_t bins = detail::cache_memory::bins;
    const std::int64_t bin = bins - 1 - place;
    std::uint64_t rows = 0;
    for (std::int64_t c = 0; c < detail::cache_memory::copies; ++c) rows += histogram[c * bins + bin];
    if (last_pass) {
      const std::uint64_t remaining = so_far->remaining;
      const bool enough = above + rows >= remaining;
      if (enough && (place == 0 || above < remaining))
        *result = {so_far->prefix << score_digits::bits | static_cast<std::uint64_t>(bin), remaining - above,
                   so_far->fits_all, 0, 0};
      else if (!enough && bin == 0)  // the first digit: the later ones count the rows of one bin
        *result = {so_far->prefix << score_digits::bits, remaining, 1, 0, 0};
    }
    above += rows;
  }
};

struct clear_choice {
  choice* result;
  std::uint64_t slots;
  KOKKOS_FUNCTION void operator()(std::int64_t) const { *result = {0, slots, 0, 0, 0}; }
};
struct clear_bins {
  std::uint32_t* histogram;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { histogram[i] = 0; }
};

/// The slots get the rows that they hold; the next kernel empties those whose rows leave.
struct keep_rows {
  const std::int64_t* current_rows;
  std::int64_t* next_rows;
  KOKKOS_FUNCTION void operator()(std::int64_t slot) const { next_rows[slot] = current_rows[slot]; }
};

/// A scan over the rows: lists those to load, and empties the slots of those that leave. Rows of the least
/// score either are all cached or none is, because the score says so.
///
/// racecheck warns of write-write hazards in this scan, as in any of Kokkos 4's scans over a value of more
/// than 8 bytes: in ParallelScan::final a thread initialises the block's first prefix, and threads of its
/// warp then write words of it without __syncwarp. They write after it, because the warp has just left
/// __syncthreads.
struct list_rows {
  struct sums {
    std::int64_t above, equal;
  };
  using value_type = sums;

  row_scores scores;
  choice* result;
  std::int64_t* next_rows;
  std::int64_t* entering;
  std::int64_t slots;
  std::int64_t rows;

  KOKKOS_FUNCTION static void init(sums& value) { value = {0, 0}; }
  KOKKOS_FUNCTION static void join(sums& value, const sums& addend) {
    value.above += addend.above;
    value.equal += addend.equal;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t row, sums& value, bool last_pass) const {
    const std::uint64_t score = scores.score(row);
    const bool fits_all = result->fits_all != 0;
    const std::uint64_t least = result->prefix;
    const bool above = score != 0 && (fits_all || score > least);
    const bool equal = !fits_all && score == least && score != 0;
    const bool chosen = above || (equal && static_cast<std::uint64_t>(value.equal) < result->remaining);
    if ((score & 1) != 0) {
      if (last_pass && !chosen) next_rows[scores.directory.find(row)] = 0;
    } else if (last_pass && chosen) {
      entering[above ? value.above : slots - 1 - value.equal] = row + 1;
    }
    if (above && (score & 1) == 0) ++value.above;
    if (equal) ++value.equal;
    if (last_pass && row == rows - 1) {
      result->above = static_cast<std::uint64_t>(value.above);
      const auto matches = static_cast<std::uint64_t>(value.equal);
      const bool any = !fits_all && (least & 1) == 0;
      result->equal = !any ? 0 : matches < result->remaining ? matches : result->remaining;
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

/// Sets `wanted`: the row that each slot of a dense directory is to hold.
template <class Exec>
void choose_rows(launch_context<Exec>& call, const row_cache& cache) {
  const Exec& exec = call.exec();
  const cache_memory& memory = cache.memory;
  const slot_book& book = memory.book;
  const std::int64_t slots = memory.slots, rows = cache.rows;
  const std::string& label = call.label("cached", "choose");
  const kernels::row_scores scores{{book.directory}, cache.counts.data(), cache.bonus()};
  static_assert((kernels::score_digits::count + 1) * sizeof(kernels::choice) <=
                cache_memory::choice_words * sizeof(std::uint64_t));
  auto* result = reinterpret_cast<kernels::choice*>(book.choice);  // each digit's comes after the last one's
  const std::int64_t threads =
      (rows + kernels::tally_scores::rows_per_thread - 1) / kernels::tally_scores::rows_per_thread;
  launch(exec, label, 1, kernels::clear_choice{result, static_cast<std::uint64_t>(slots)});
  for (int digit = 0; digit < kernels::score_digits::count; ++digit, ++result) {
    launch(exec, label, cache_memory::copies * cache_memory::bins, kernels::clear_bins{book.histogram});
    launch(exec, label, threads, kernels::tally_scores{scores, result, book.histogram, rows, threads, digit});
    launch_scan(exec, label, cache_memory::bins, kernels::pick_digit{book.histogram, result, result + 1});
  }
  launch(exec, label, slots, kernels::keep_rows{book.current_rows, book.next_rows});
  launch_scan(exec, label, rows,
              kernels::list_rows{scores, result, book.next_rows, book.entering, slots, rows});
  launch_scan(exec, label, slots, kernels::fill_slots{result, book.entering, book.next_rows, slots});
}

}  // namespace ferry::detail
