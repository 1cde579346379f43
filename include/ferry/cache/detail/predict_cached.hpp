// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/explanation.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/profile/detail/candidate_paths.hpp>
#include <ferry/profile/detail/path_rule.hpp>
#include <ferry/profile/explanation.hpp>
#include <ferry/profile/machine_profile.hpp>
#include <ferry/profile/path_kind.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

namespace ferry::detail {

/// The facts of a verb's call on a cached table.
struct cached_facts {
  move_facts cold;         ///< as if there were no cache
  std::int64_t slots = 0;  ///< rows that fit into the cache
  std::int64_t rows = 0;   ///< of the table
  bool known = false;      ///< true if `hit_rate` was counted
  double hit_rate = 0;
  bool found_apart = true;  ///< true if a kernel of its own looks the rows up
};

/// Hits and misses are of one launch and overlap, so the slower ones count. A lookup before it takes about as
/// long to start as the launch.
template <class Exec>  // a template, so that only those who explain compile it
cache::explanation explain_cached(const machine_profile& profile, const cached_facts& cached) {
  const double even =
      cached.rows > 0 ? std::min(1.0, static_cast<double>(cached.slots) / static_cast<double>(cached.rows))
                      : 0.0;
  cache::explanation report;
  report.hit_rate = cached.known ? cached.hit_rate : even;
  move_facts cold = cached.cold, hot = cached.cold;
  const std::int64_t hits = std::llround(report.hit_rate * static_cast<double>(cached.cold.positions));
  hot.table_space = device_space::name;
  hot.table_bytes = cached.rows > 0 ? cached.cold.table_bytes / cached.rows * cached.slots : 0;
  hot.positions = std::min(hits, cached.cold.positions);
  cold.positions = cached.cold.positions - hot.positions;
  const bool both_ways = cold.action == verb::step || cold.action == verb::scatter_add;
  report.link_bytes = cold.positions * cold.row_bytes * (both_ways ? 2 : 1);

  const path_cost miss = costs_of(profile, cold)[path_kind::direct];
  const path_cost hit = costs_of(profile, hot)[path_kind::direct];
  const double start = (cached.found_apart ? 2 : 1) * miss.start_us * 1e-6;
  const double cold_moves = miss.rows_us(cold.positions) * 1e-6;
  const double hot_moves = hit.rows_us(hot.positions) * 1e-6;
  explanation::candidate line;
  line.path = path_kind::direct;
  line.picked = true;
  line.seconds = start + std::max(cold_moves, hot_moves);
  line.gb_per_s = static_cast<double>(cached.cold.positions) * static_cast<double>(cached.cold.row_bytes) /
                  std::max(line.seconds, 1e-12) * 1e-9;
  line.reason =
      joined(in_words(100 * report.hit_rate, 1, "% hits"),
             (cached.known ? " so far" : ", if all rows are equally likely"), ", ",
             in_words(hot_moves * 1e3, 3, "ms"), "; misses ",
             in_words(static_cast<double>(report.link_bytes) * 1e-6, 3, "MB"), " over the link, ",
             in_words(cold_moves * 1e3, 3, "ms"), "; path::automatic is path::direct for a cached table.");
  report.picked = path_kind::direct;
  report.candidates.push_back(std::move(line));
  return report;
}

}  // namespace ferry::detail
