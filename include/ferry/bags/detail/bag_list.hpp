// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// Stands for the array that a call does without: the weights of positions, or the positions of maxima.
struct no_array {
  using value_type = void;
  using memory_space = pageable_space;
  static constexpr void* data = nullptr;
  static constexpr std::int64_t row_stride() { return 0; }
};

}  // namespace ferry::detail

namespace ferry::kernels {

/// The last i of [first, end) for which holds(i): it holds for `first`, and up to some i.
template <class Holds>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t last_that(std::int64_t first, std::int64_t end, const Holds& holds) {
  while (end - first > 1) {
    const std::int64_t middle = first + (end - first) / 2;
    if (holds(middle))
      first = middle;
    else
      end = middle;
  }
  return first;
}

/// The positions [begin, end) of a bag.
struct bag_range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool is_good = true;
};

/// Bags whose rows are added in pieces, see sum_pieces.
struct long_bags {
  static constexpr std::int64_t least = 1024;  ///< positions

  KOKKOS_FORCEINLINE_FUNCTION static constexpr bool has(const bag_range& range) {
    return range.end - range.begin >= least;
  }
};

/// The bags of a batch: by offsets, or of a fixed number of positions each.
template <class Offset>
struct bag_list {
  const Offset* offsets;  ///< null: each bag has `hotness` positions
  std::int64_t hotness;
  std::int64_t bags;
  std::int64_t positions;
  bool ends_open;  ///< the offsets lack the end of the last bag, which is the number of positions
  bool checks;
  ferry::detail::report_writer report;

  KOKKOS_FUNCTION std::int64_t begin(std::int64_t bag) const {
    return offsets == nullptr ? bag * hotness : static_cast<std::int64_t>(offsets[bag]);
  }
  KOKKOS_FUNCTION std::int64_t end(std::int64_t bag) const {
    return ends_open && bag + 1 == bags ? positions : begin(bag + 1);
  }

  /// The positions of a bag as the offsets say. Both of them are loaded at once.
  KOKKOS_FUNCTION bag_range span(std::int64_t bag) const {
    if (offsets == nullptr) return {bag * hotness, (bag + 1) * hotness, true};
    const bool is_open = ends_open && bag + 1 == bags;
    const Offset* const first = offsets + bag;
    const Offset next = first[is_open ? 0 : 1];
    return {static_cast<std::int64_t>(*first), is_open ? positions : static_cast<std::int64_t>(next), true};
  }
  /// True if these are fewer than `most` positions of the batch.
  KOKKOS_FUNCTION bool has_few(const bag_range& range, std::int64_t most) const {
    return range.begin >= 0 && range.begin <= range.end && range.end <= positions &&
           range.end - range.begin < most;
  }

  /// A bag with bad offsets has no positions, so nothing outside of the batch is read.
  KOKKOS_FUNCTION bag_range range(std::int64_t bag, bool record) const {
    bag_range span{begin(bag), end(bag), true};
    if (!checks || offsets == nullptr) return span;
    const bool bad_begin = span.begin < 0 || span.begin > positions;
    if (!bad_begin && span.end >= span.begin && span.end <= positions) return span;
    if (record) report_range(bag, span, bad_begin);
    return {0, 0, false};
  }

  /// The bag of a position that some bag has: of the bags that begin there or before, the last. Some bag of
  /// the list if the offsets are bad.
  KOKKOS_FUNCTION std::int64_t bag_of(std::int64_t position) const {
    if (offsets == nullptr) return position / hotness;
    return last_that(0, bags, [&](std::int64_t i) { return begin(i) <= position; });
  }

  KOKKOS_FUNCTION void report_offset(std::int64_t index, std::int64_t offset,
                                     ferry::detail::offset_fault fault, std::int64_t before = 0) const {
    report.bad_bag(index, static_cast<std::uint64_t>(offset), std::is_unsigned_v<Offset>, fault,
                   static_cast<std::uint64_t>(before));
  }

 private:
  KOKKOS_FUNCTION void report_range(std::int64_t bag, const bag_range& span, bool bad_begin) const {
    using ferry::detail::offset_fault;
    const std::int64_t offset = bad_begin ? span.begin : span.end;
    // An unsigned offset that turns negative is one of 2^63 or more.
    const auto fault = offset > positions || (offset < 0 && std::is_unsigned_v<Offset>) ? offset_fault::beyond
                       : offset < 0 ? offset_fault::negative
                                    : offset_fault::decreases;
    report_offset(bad_begin ? bag : bag + 1, offset, fault, span.begin);
  }
};

/// Reports the bags with bad offsets. One thread per bag.
template <class Offset>
struct check_bags {
  bag_list<Offset> bags;

  static std::int64_t bytes_each() { return 2 * sizeof(Offset); }

  KOKKOS_FUNCTION void operator()(std::int64_t bag) const { bags.range(bag, true); }
};

/// A long bag whose pieces all threads of a launch share.
struct long_bag {
  std::int64_t bag;
  std::int64_t begin, end;   ///< its positions
  std::int64_t first_piece;  ///< among the pieces of all bags of the list
};

/// Sums of pieces of a bag of the list that have arrived, of a tile.
struct piece_arrivals {
  std::uint64_t rows;   ///< positions that have a row; fewer than positions if one has none
  std::uint32_t count;  ///< of sums
};

/// Number of bags of a list, and of their pieces.
struct long_bag_totals {
  static constexpr int bits = 24;  ///< of the number of bags, in the word that has both

  std::int64_t bags;
  std::int64_t pieces;

  KOKKOS_FORCEINLINE_FUNCTION static long_bag_totals from(std::uint64_t word) {
    return {static_cast<std::int64_t>(word & ((std::uint64_t{1} << bits) - 1)),
            static_cast<std::int64_t>(word >> bits)};
  }
  KOKKOS_FORCEINLINE_FUNCTION static std::uint64_t word_for_bag(std::int64_t pieces) {
    return static_cast<std::uint64_t>(pieces) << bits | 1U;
  }
};

/// Long bags that the threads which find them leave to pool_long_bags. Their pieces are numbered in the order
/// of the list, which differs from run to run; sums do not depend on it.
///
/// Bags that do not overlap fit into the list. Bags next to bad offsets may overlap. If they exceed the list,
/// the counts say so.
struct long_bag_list {
  ferry::detail::long_bag_counts* state = nullptr;  ///< null: there is no list
  std::int64_t least = 0;                           ///< positions of a bag that is listed
  std::int64_t most_bags = 0;                       ///< that have room
  std::int64_t most_pieces = 0;
  std::int64_t tiles = 0;  ///< of a row
  long_bag* bags = nullptr;
  piece_arrivals* arrivals = nullptr;  ///< of each bag and tile

  KOKKOS_FORCEINLINE_FUNCTION bool takes(const bag_range& range) const {
    return state != nullptr && range.end - range.begin >= least;
  }
  KOKKOS_FUNCTION void add(std::int64_t bag, const bag_range& range) const {
    const std::int64_t pieces = sum_pieces(range.end - range.begin).count;
    const auto before = long_bag_totals::from(
        Kokkos::atomic_fetch_add(&state->listed, long_bag_totals::word_for_bag(pieces)));
    if (before.bags >= most_bags || before.pieces + pieces > most_pieces) return;
    bags[before.bags] = {bag, range.begin, range.end, before.pieces};
    for (std::int64_t tile = 0; tile < tiles; ++tile) arrivals[before.bags * tiles + tile] = {0, 0};
  }

  /// All threads of a device's kernel load the word: Kokkos' loop of compare-and-exchange takes them 40 us.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION long_bag_totals counts() const {
    KOKKOS_IF_ON_DEVICE(
        (return long_bag_totals::from(*static_cast<const volatile std::uint64_t*>(&state->listed));))
    KOKKOS_IF_ON_HOST((return long_bag_totals::from(Kokkos::atomic_load(&state->listed));))
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool exceeds(const long_bag_totals& totals) const {
    return totals.bags > most_bags || totals.pieces > most_pieces;
  }
  /// The index in the list of the bag that has a piece.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t index_of(std::int64_t piece,
                                                                  std::int64_t count) const {
    return last_that(0, count, [&](std::int64_t i) { return bags[i].first_piece <= piece; });
  }
  /// Counts a part of the work that is done. The last of `parts` empties the list for the next verb.
  KOKKOS_FORCEINLINE_FUNCTION void count_part(std::int64_t parts) const {
    if (Kokkos::atomic_fetch_add(&state->completed, 1U) + 1 != static_cast<unsigned int>(parts)) return;
    Kokkos::atomic_store(&state->completed, 0U);
    Kokkos::atomic_store(&state->listed, std::uint64_t{0});
  }
};

/// sizes[b] = 0.
struct clear_sizes {
  std::int64_t* sizes;

  static std::int64_t bytes_each() { return sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t bag) const { sizes[bag] = 0; }
};

/// Adds the number of positions with a row to the sizes of their bags. One thread per 32 positions, so that
/// bags of any length take the same time.
template <class Offset>
struct count_bag_rows {
  static constexpr std::int64_t run = 32;

  bag_list<Offset> bags;
  const std::int64_t* row_of;
  std::int64_t* sizes;

  static std::int64_t bytes_each() { return 2 * run * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t last = (i + 1) * run < bags.positions ? (i + 1) * run : bags.positions;
    for (std::int64_t k = i * run; k < last;) {
      const std::int64_t bag = bags.bag_of(k);
      const bag_range range = bags.range(bag, false);
      if (k < range.begin || k >= range.end) {
        ++k;
        continue;
      }
      const std::int64_t end = range.end < last ? range.end : last;
      std::int64_t rows = 0;
      for (; k < end; ++k) rows += row_of[k] >= 0 ? 1 : 0;
      if (rows != 0) Kokkos::atomic_add(&sizes[bag], rows);
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The number of positions of each bag that have a row, -1 being no row; null if `row_of` is null and all
/// have one. Kept until the verb ends.
template <class Exec, class Offset>
const std::int64_t* bag_row_counts(launch_context<Exec>& call, const std::string& label,
                                   const kernels::bag_list<Offset>& bags, const std::int64_t* row_of) {
  if (row_of == nullptr) return nullptr;
  constexpr std::int64_t run = kernels::count_bag_rows<Offset>::run;
  auto* const sizes = call.template scratch<std::int64_t>(bags.bags);
  launch(call.exec(), call.label_part(label, "clear"), bags.bags, kernels::clear_sizes{sizes});
  if (bags.bags > 0)
    launch(call.exec(), call.label_part(label, "count"), (bags.positions + run - 1) / run,
           kernels::count_bag_rows<Offset>{bags, row_of, sizes});
  return sizes;
}

}  // namespace ferry::detail
