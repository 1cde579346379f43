// SPDX-License-Identifier: Apache-2.0

#include <ferry/cache/detail/row_cache.hpp>

#include "../../backends/enabled.hpp"
#include "exchange_rows.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

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
  using shared_memory = tally;

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

namespace ferry::kernels {

/// Which slots move_slots moves, and where to.
enum class slot_move {
  leaving_to_host,    ///< changed slots that get another row next
  rewritten_to_host,  ///< of these, slots that verbs changed after leaving_to_host had written them
  changed_to_host,    ///< all changed slots
  entering_to_slot,   ///< slots that get another row next
  stale_to_slot,      ///< of these, slots whose next row verbs changed in host memory after it was read
  held_to_slot        ///< all slots that hold a row
};

/// The exchanges of a move.
struct slot_moves {
  detail::slot_book book;
  std::int64_t slots;
  slot_move move;

  /// True if the move concerns slots that get another row next: book.moving lists them.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool by_list() const {
    return move != slot_move::changed_to_host && move != slot_move::held_to_slot;
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t count() const {
    return by_list() ? static_cast<std::int64_t>(*book.moving_count) : slots;
  }
  KOKKOS_FORCEINLINE_FUNCTION slot_exchange operator()(std::int64_t item) const {
    const std::int64_t slot = by_list() ? book.moving[item] : item;
    const std::int64_t current_row = book.current_rows[slot] - 1, next_row = book.next_rows[slot] - 1;
    switch (move) {
      case slot_move::leaving_to_host:
      case slot_move::changed_to_host:
        return {slot, book.changed[slot] != 0 ? current_row : -1, -1};
      case slot_move::rewritten_to_host:
        return {slot, book.changed[slot] == detail::slot_dirty_again ? current_row : -1, -1};
      case slot_move::entering_to_slot:
        return {slot, -1, next_row};
      case slot_move::stale_to_slot:
        return {slot, -1, book.stale[slot] != 0 ? next_row : -1};
      case slot_move::held_to_slot:
        break;
    }
    return {slot, -1, current_row};
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Moves the rows of one array.
template <class Exec>
void move_slots(const Exec& exec, const std::string& label, const cache_memory& memory,
                const cached_array& array, kernels::slot_move move) {
  constexpr std::int64_t few = std::int64_t{1} << 15, many = std::int64_t{1} << 20;
  const kernels::slot_moves moves{memory.book, memory.slots, move};
  launch_exchange(exec, label, array, moves, memory.slots, moves.by_list() ? few : many);
}

/// Moves the rows of all arrays.
template <class Exec>
void move_slots(const Exec& exec, const std::string& label, const row_cache& cache, kernels::slot_move move) {
  for (const cached_array& array : cache.arrays) move_slots(exec, label, cache.memory, array, move);
}

}  // namespace ferry::detail

/// A refresh of rows. Between two batches, on the instance of a verb, the rows are chosen. Then, on an
/// instance of its own, while later verbs use the cache as it was:
///   1. changed rows that leave are written to host memory. Between two batches they leave the directory,
///      after those that verbs have changed once more meanwhile are written again;
///   2. rows that enter are loaded into the free slots. Between two batches they enter the directory, after
///      those that verbs have changed in host memory meanwhile are loaded again.
/// Each part takes a fixed number of batches, so the rows that are cached in a batch do not depend on the
/// speed of the device. Verbs wait for a part in the order of their instance, not on the host.
namespace ferry::kernels {

/// Lists the slots that are about to get another row, in any order; one thread per slot.
struct list_moving {
  detail::slot_book book;

  KOKKOS_FUNCTION void operator()(std::int64_t slot) const {
    if (book.current_rows[slot] == book.next_rows[slot]) return;
    const std::uint64_t entry = Kokkos::atomic_fetch_add(book.moving_count, std::uint64_t{1});
    book.moving[entry] = slot;
  }
};

/// Marks changed slots as dirty, so that those that verbs change from now on stand out as dirty again. One
/// thread per slot.
struct age_changes {
  std::uint8_t* changed;
  KOKKOS_FUNCTION void operator()(std::int64_t slot) const {
    if (changed[slot] != 0) changed[slot] = detail::slot_dirty;
  }
};

/// Takes leaving rows out of the directory and announces those that enter; one thread per slot.
struct free_slots {
  detail::slot_book book;

  KOKKOS_FUNCTION void operator()(std::int64_t slot) const {
    if (book.next_rows[slot] == book.current_rows[slot]) return;
    if (book.current_rows[slot] != 0) book.directory.erase(book.current_rows[slot] - 1);
    if (book.next_rows[slot] != 0) book.directory.announce(book.next_rows[slot] - 1, slot);
    book.current_rows[slot] = 0;
    book.changed[slot] = 0;
    book.stale[slot] = 0;
  }
};

/// Puts loaded rows into the directory; one thread per slot.
struct insert_rows {
  detail::slot_book book;

  KOKKOS_FUNCTION void operator()(std::int64_t slot) const {
    if (book.next_rows[slot] == book.current_rows[slot]) return;
    book.directory.insert(book.next_rows[slot] - 1, slot);
    Kokkos::atomic_add(book.tallies + std::int64_t{2} * detail::tally_room, std::uint64_t{1});
    book.current_rows[slot] = book.next_rows[slot];
  }
};

struct halve_counts {
  std::uint32_t* counts;
  KOKKOS_FUNCTION void operator()(std::int64_t row) const { counts[row] /= 2; }
};

/// Times the work of a refresh between two kernels of one instance.
template <class Backend>
struct begin_time {
  std::uint64_t* begun;
  KOKKOS_FUNCTION void operator()(std::int64_t) const { *begun = Backend::clock_in_kernel(); }
};
template <class Backend>
struct add_time {
  const std::uint64_t* begun;
  std::uint64_t* sum;
  KOKKOS_FUNCTION void operator()(std::int64_t) const {
    const std::uint64_t now = Backend::clock_in_kernel();
    if (now > *begun) Kokkos::atomic_add(sum, now - *begun);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Enqueues work() on an instance, and adds the time that it takes to that of the refreshes.
template <class Exec, class Work>
void timed(const Exec& exec, const std::string& label, const row_cache& cache, bool on_side_instance,
           const Work& work) {
  using backend = execution_backend<Exec>;
  std::uint64_t* const sum = cache.memory.book.tallies + std::int64_t{2} * tally_room + 1;
  std::uint64_t* const begun = sum + (on_side_instance ? 2 : 1);
  launch(exec, label, 1, kernels::begin_time<backend>{begun});
  work();
  launch(exec, label, 1, kernels::add_time<backend>{begun, sum});
}

/// Declares that later work of this call reads and writes slots and, with `host`, all rows in host memory.
template <ExecutionSpace Exec>
void use_slots(launch_context<Exec>& call, const row_cache& cache, bool host) {
  if (const int device = cache.accesses()->device();
      !is_host_exec<Exec> && device >= 0 && device != call.device())
    throw invalid_argument(joined("ferry::", call.verb(), ": the cached rows of '", cache.label,
                                  "' lie on device ", device, ", but the instance is of device ",
                                  call.device(), "; give the verb an instance of that device"));
  call.writes_to(tracked(cache.accesses()));
  if (!host) return;
  for (const cached_array& array : cache.arrays)
    if (auto alive = array.accesses.lock()) call.writes_to(tracked(std::move(alive)));
}

/// Takes an instance for the refresh if it has none. False if Kokkos has no memory for one.
template <class Exec>
bool acquire_refresh_stream([[maybe_unused]] launch_context<Exec>& call, [[maybe_unused]] row_cache& cache) {
  if constexpr (!is_host_exec<Exec>) {
    using backend = execution_backend<Exec>;
    try {
      const typename backend::capture_pause pause(true);  // an instance allocates
      if (cache.refresh.stream == nullptr)
        cache.refresh.stream = engine::get(call.exec())->side_stream(call.exec());
    } catch (const std::exception&) {
      return false;
    }
  }
  return true;
}

/// Writes leaving rows to host memory, `leaving` says which of them, and frees their slots.
template <class Exec>
void free_slots(launch_context<Exec>& call, row_cache& cache, const std::string& label,
                kernels::slot_move leaving) {
  if (cache.stage == nullptr) move_slots(call.exec(), label, cache, leaving);
  launch(call.exec(), label, cache.memory.slots, kernels::free_slots{cache.memory.book});
}

/// Lists the slots whose rows in `next_rows` are new.
template <class Exec>
void list_moving(launch_context<Exec>& call, const row_cache& cache, const std::string& label) {
  launch(call.exec(), label, 1, kernels::clear_numbers<std::uint64_t>{cache.memory.book.moving_count});
  launch(call.exec(), label, cache.memory.slots, kernels::list_moving{cache.memory.book});
}

/// Gives the slots the rows in `next_rows`, at once.
template <ExecutionSpace Exec>
void refresh_now(launch_context<Exec>& call, row_cache& cache) {
  const std::string& label = call.label("cached", "exchange");
  list_moving(call, cache, label);
  free_slots(call, cache, label, kernels::slot_move::leaving_to_host);
  if (cache.stage != nullptr)
    cache.stage(&call, cache, false);
  else
    move_slots(call.exec(), label, cache, kernels::slot_move::entering_to_slot);
  launch(call.exec(), label, cache.memory.slots, kernels::insert_rows{cache.memory.book});
}

/// Moves slots on the instance of the refresh, after all work of this call so far, and times it. A host moves
/// them at once, on its own instance; `caller_times` if its time is part of one that the caller takes.
template <class Exec>
void move_on_refresh_stream(launch_context<Exec>& call, row_cache& cache, const std::string& label,
                            kernels::slot_move move, bool caller_times) {
  const auto move_on = [&](const Exec& exec) {
    if (is_host_exec<Exec> && caller_times)
      move_slots(exec, label, cache, move);
    else
      timed(exec, label, cache, true, [&] { move_slots(exec, label, cache, move); });
  };
  if constexpr (is_host_exec<Exec>) {
    move_on(call.exec());
  } else {
    using backend = execution_backend<Exec>;
    const Exec& side = *static_cast<const Exec*>(cache.refresh.stream.get());
    auto completion = call.event_to_record();
    if (const event_handle before = call.mark(); before != nullptr) backend::wait_for(side, *before);
    move_on(side);
    backend::record_at(side, *completion);
    cache.refresh.completion = std::move(completion);
  }
}

/// Begins to load rows into free slots.
template <class Exec>
void load_on_refresh_stream(launch_context<Exec>& call, row_cache& cache, bool caller_times) {
  move_on_refresh_stream(call, cache, call.label("cached", "load"), kernels::slot_move::entering_to_slot,
                         caller_times);
  cache.refresh.part = refresh_part::entering;
}

/// Ends the part of the refresh that is under way, and begins the next one.
template <class Exec>
void end_part(launch_context<Exec>& call, row_cache& cache) {
  auto& refresh = cache.refresh;
  const std::string& label = call.label("cached", "exchange");
  use_slots(call, cache, true);
  if (refresh.completion != nullptr) execution_backend<Exec>::wait_for(call.exec(), *refresh.completion);
  if (refresh.part == refresh_part::leaving) {
    timed(call.exec(), label, cache, false,
          [&] { free_slots(call, cache, label, kernels::slot_move::rewritten_to_host); });
    load_on_refresh_stream(call, cache, false);
    refresh.due += refresh.lag;
  } else {
    timed(call.exec(), label, cache, false, [&] {
      move_slots(call.exec(), label, cache, kernels::slot_move::stale_to_slot);
      launch(call.exec(), label, cache.memory.slots, kernels::insert_rows{cache.memory.book});
    });
    refresh = {};
  }
}

/// Ends the refresh that is under way: no part of it is left when later work of this call begins.
template <class Exec>
void end_refresh(launch_context<Exec>& call, row_cache& cache) {
  while (cache.refresh.part != refresh_part::none) end_part(call, cache);
}

/// Chooses the rows used most and begins to load them in place of cached ones. Does it at once if the next time
/// comes soon, or if host threads have to bring the rows. Halves the counts after a full interval.
template <class Exec>
void begin_refresh(launch_context<Exec>& call, row_cache& cache) {
  end_refresh(call, cache);
  use_slots(call, cache, true);
  const std::int64_t interval = std::min(cache.interval, cache.batches);  // to the next time
  const std::string& label = call.label("cached", "exchange");
  timed(call.exec(), label, cache, false, [&] {
    auto& refresh = cache.refresh;
    choose_rows(call, cache);
    if (interval < row_cache::parts_from || cache.stage != nullptr || !acquire_refresh_stream(call, cache)) {
      refresh_now(call, cache);
    } else {
      refresh.lag = std::max<std::int64_t>(1, interval / 8);
      refresh.due = cache.batches + refresh.lag;
      list_moving(call, cache, label);
      if (cache.changed || cache.captured) {
        launch(call.exec(), label, cache.memory.slots, kernels::age_changes{cache.memory.book.changed});
        move_on_refresh_stream(call, cache, label, kernels::slot_move::leaving_to_host, true);
        refresh.part = refresh_part::leaving;
      } else {
        free_slots(call, cache, label, kernels::slot_move::rewritten_to_host);
        load_on_refresh_stream(call, cache, true);
      }
    }
    if (interval == cache.interval)
      launch(call.exec(), call.label("cached", "halve"), cache.rows,
             kernels::halve_counts{cache.counts.data()});
  });
  cache.due = cache.batches + interval;
  ++cache.refreshes;
}

template <ExecutionSpace Exec>
void flush_rows(launch_context<Exec>& call, row_cache& cache) {
  end_refresh(call, cache);
  use_slots(call, cache, true);
  if (!cache.changed && !cache.captured) return;
  const std::string& label = call.label("cached", "flush");
  move_slots(call.exec(), label, cache, kernels::slot_move::changed_to_host);
  launch(call.exec(), label, cache.memory.slots,
         kernels::clear_numbers<std::uint8_t>{cache.memory.book.changed});
  cache.changed = false;
}

template <ExecutionSpace Exec>
void reload_rows(launch_context<Exec>& call, row_cache& cache) {
  end_refresh(call, cache);
  use_slots(call, cache, true);
  const std::string& label = call.label("cached", "reload");
  if (cache.stage != nullptr)
    cache.stage(&call, cache, true);
  else
    move_slots(call.exec(), label, cache, kernels::slot_move::held_to_slot);
  launch(call.exec(), label, cache.memory.slots,
         kernels::clear_numbers<std::uint8_t>{cache.memory.book.changed});
  cache.changed = false;
}

template <ExecutionSpace Exec>
bool begin_batch(launch_context<Exec>& call, row_cache& cache, const std::shared_ptr<plan_storage>& plan,
                 bool writes) {
  use_slots(call, cache, false);
  if (writes && !cache.writes_through) {
    cache.changed = true;
    cache.captured = cache.captured || call.capturing();
  }
  if (cache.interval == 0) return false;
  if (call.capturing()) return true;
  if (!cache.begins_batch(plan)) return false;
  if (cache.refresh.part != refresh_part::none && cache.batches >= cache.refresh.due) end_part(call, cache);
  if (cache.batches >= cache.due) begin_refresh(call, cache);
  ++cache.batches;
  return true;
}

template <ExecutionSpace Exec>
void add_backing_array(launch_context<Exec>& call, row_cache& cache, const untyped_array& array) {
  if (cache.find(array) != nullptr) return;
  access_tracker& accesses = *array.shape.accesses;
  cached_array entry(array, array.shape.width() * static_cast<std::int64_t>(array.element_bytes));
  call.refuse_capture(
      "but the rows of this state are not in device memory yet, and each launch would load them again; step "
      "with it once before the capture");
  if (cache.captured_moves)
    throw invalid_argument(joined("ferry::", call.verb(), ": ", array.note().describe(),
                                  " can't be cached any more: a graph that was captured moves the rows of '",
                                  cache.label, "' without it; step with this state once before the capture"));
  cache.arrays.reserve(cache.arrays.size() + 1);
  const std::string label(array.shape.label);
  entry.allocate(label, cache.memory.slots);
  end_refresh(call, cache);
  use_slots(call, cache, true);  // an instance of another device is refused before anything changes
  if (!accesses.attach_cache(label))
    throw invalid_argument(joined("ferry::", call.verb(), ": ", array.note().describe(),
                                  " is a backing array of another cached_table"));
  cache.arrays.push_back(std::move(entry));
  try {
    move_slots(call.exec(), call.label("cached", "load"), cache.memory, cache.arrays.back(),
               kernels::slot_move::held_to_slot);
  } catch (...) {
    cache.arrays.pop_back();
    accesses.detach_cache();
    throw;
  }
}

#define FERRY_CACHES_OF(EXEC)                                                                               \
  template void use_slots(launch_context<EXEC>&, const row_cache&, bool);                                   \
  template void refresh_now(launch_context<EXEC>&, row_cache&);                                             \
  template void flush_rows(launch_context<EXEC>&, row_cache&);                                              \
  template void reload_rows(launch_context<EXEC>&, row_cache&);                                             \
  template bool begin_batch(launch_context<EXEC>&, row_cache&, const std::shared_ptr<plan_storage>&, bool); \
  template void add_backing_array(launch_context<EXEC>&, row_cache&, const untyped_array&);
FERRY_FOR_SPACES_OF_DEVICE(FERRY_CACHES_OF)
#undef FERRY_CACHES_OF

}  // namespace ferry::detail
