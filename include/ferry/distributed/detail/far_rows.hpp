// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/detail/shard_places.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// The sources of a gather by a plan that reads far rows once, see row_source.hpp. A row is near if its shard
/// is in the memory of the device that reads, and far if it has to cross a link.
namespace ferry::kernels {

/// A plan's places, in the order of its rows, and which of their rows are far.
template <class Spread>
struct plan_of_shards {
  const std::uint64_t* sorted_rows;
  const std::int64_t* order;
  std::int64_t places;
  std::int64_t rows;
  Spread spread;
  int ranks;
  std::uint64_t near;  ///< bit r: shard r is near
  static_assert(most_shards <= 64, "ferry: one bit for each shard.");

  /// The row of a place, -1 for none.
  KOKKOS_FUNCTION std::int64_t row(std::int64_t place) const {
    if (place >= places) return -1;
    const auto row = static_cast<std::int64_t>(sorted_rows[place]);
    return row < rows ? row : -1;
  }
  /// Whether the place before this one has the same row.
  KOKKOS_FUNCTION bool repeats(std::int64_t place) const {
    return place != 0 && sorted_rows[place - 1] == sorted_rows[place];
  }
  KOKKOS_FUNCTION bool is_near(std::int64_t row) const {
    return (near >> spread.owner(row, rows, ranks) & 1) != 0;
  }
};

/// Each place of a near row, and the first place of each far row. So a far row crosses the link once, while
/// the device's own memory serves the other threads. Neighbouring items are from different parts of the
/// plan, one part for each rank: a sharding into blocks would else bring all far rows after all near ones.
template <class Spread>
struct far_rows_once {
  plan_of_shards<Spread> plan;
  detail::fast_divisor parts;
  std::int64_t of_part;  ///< places

  far_rows_once(const plan_of_shards<Spread>& of_plan)
      : plan(of_plan), parts(of_plan.ranks), of_part((of_plan.places + of_plan.ranks - 1) / of_plan.ranks) {}

  [[nodiscard]] std::int64_t items() const { return of_part * parts.divisor(); }

  KOKKOS_FUNCTION std::int64_t row(std::int64_t item, bool) const {
    const std::int64_t at = place(item);
    const std::int64_t row = plan.row(at);
    return row >= 0 && plan.repeats(at) && !plan.is_near(row) ? -1 : row;
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t item) const { return plan.order[place(item)]; }

 private:
  KOKKOS_FUNCTION std::int64_t place(std::int64_t item) const {
    const std::int64_t of = parts.quotient(item);
    return (item - of * parts.divisor()) * of_part + of;
  }
};

/// The other places of far rows. Their rows are those of the batch that far_rows_once has written: the first
/// position of each row.
template <class Spread>
struct far_rows_again {
  plan_of_shards<Spread> plan;
  const std::int64_t* inverse;
  const std::int64_t* segment_begin;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t place, bool) const {
    const std::int64_t row = plan.row(place);
    if (row < 0 || !plan.repeats(place) || plan.is_near(row)) return -1;
    return plan.order[segment_begin[inverse[plan.order[place]]]];
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t place) const { return plan.order[place]; }
};

}  // namespace ferry::kernels
