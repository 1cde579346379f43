// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include "launch_scan.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The hit rate between exchanges, in slot_book::trend. While it changes, popularity does, or the cache is
/// still filling: rows that were not used of late then leave for any that were. Once it has settled they stay
/// until nothing is left of their counts, because chance would exchange rows that are hardly used: the ones
/// that come miss as often as those that go. Integers and one division decide, so the result is the same on
/// every device.
struct hit_trend {
  static constexpr double most_change = 1.0 / 64;

  std::uint64_t hits, misses;  ///< of all verbs up to the latest exchange
  double rate;                 ///< between the latest two exchanges
  std::uint64_t settled;       ///< 1: it changed by most_change at most
};

/// A scan over the counters of hits and misses, for their sums.
struct weigh_hits {
  struct sums {
    std::uint64_t hits, misses;
  };
  using value_type = sums;

  const std::uint64_t* tallies;
  hit_trend* trend;

  KOKKOS_FUNCTION static void init(sums& value) { value = {0, 0}; }
  KOKKOS_FUNCTION static void join(sums& value, const sums& addend) {
    value.hits += addend.hits;
    value.misses += addend.misses;
  }
  KOKKOS_FUNCTION void operator()(std::int64_t i, sums& value, bool last_pass) const {
    value.hits += tallies[i];
    value.misses += tallies[detail::tally_room + i];
    if (!last_pass || i != detail::tally_room - 1) return;
    const std::uint64_t hits = value.hits - trend->hits, uses = hits + value.misses - trend->misses;
    const double rate = uses == 0 ? 0.0 : static_cast<double>(hits) / static_cast<double>(uses);
    const double change = rate - trend->rate;
    const bool settled = change <= hit_trend::most_change && -change <= hit_trend::most_change;
    *trend = {value.hits, value.misses, rate, settled ? std::uint64_t{1} : std::uint64_t{0}};
  }
};

/// The scores by which cached rows are ahead of the others.
struct cached_bonus {
  std::uint32_t more;
  const hit_trend* trend;

  /// The least count of a row that has the bonus.
  KOKKOS_FORCEINLINE_FUNCTION std::uint32_t late() const {
    return trend->settled != 0 ? 1 : detail::row_cache::of_late;
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

inline kernels::hit_trend* trend_of(const row_cache& cache) {
  static_assert(sizeof(kernels::hit_trend) <= cache_memory::trend_words * sizeof(std::uint64_t));
  return reinterpret_cast<kernels::hit_trend*>(cache.memory.book.trend);
}
inline kernels::cached_bonus bonus_of(const row_cache& cache) { return {cache.bonus(), trend_of(cache)}; }

/// Takes the hit rate since the last exchange down.
template <class Exec>
void weigh_hits(launch_context<Exec>& call, const row_cache& cache) {
  launch_scan(call.exec(), call.label("cached", "choose"), tally_room,
              kernels::weigh_hits{cache.memory.book.tallies, trend_of(cache)});
}

}  // namespace ferry::detail
