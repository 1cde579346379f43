// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/report.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

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
    std::int64_t low = 0, high = bags;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      if (begin(middle) <= position)
        low = middle;
      else
        high = middle;
    }
    return low;
  }

  KOKKOS_FUNCTION void report_offset(std::int64_t place, std::int64_t offset,
                                     ferry::detail::offset_fault fault, std::int64_t before = 0) const {
    report.bad_bag(place, static_cast<std::uint64_t>(offset), std::is_unsigned_v<Offset>, fault,
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

}  // namespace ferry::kernels
