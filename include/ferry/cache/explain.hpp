// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/make_cache.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/profile/current_profile.hpp>
#include <ferry/profile/detail/path_rule.hpp>
#include <ferry/profile/explain.hpp>
#include <ferry/profile/machine_profile.hpp>
#include <ferry/profile/path_kind.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace ferry::cache {

/// The answer of ferry::explain for a verb on a cached_table. Its one candidate is path::direct.
struct explanation : ferry::explanation {
  double hit_rate = 0;          ///< expected share of the positions whose row is in device memory
  std::int64_t link_bytes = 0;  ///< expected bytes of rows over the link, in both directions together
};

}  // namespace ferry::cache

namespace ferry::detail {

/// `whole`: the facts as if there were no cache. Of the `rows` rows of the table `slots` fit into the cache.
/// Hits and misses are of one launch and overlap, so the slower ones count. A lookup before it takes about as
/// long to start as the launch.
template <class Exec>  // a template, so that only those who explain compile it
cache::explanation explain_cached(const machine_profile& profile, const move_facts& whole, std::int64_t rows,
                                  std::int64_t slots, const cache::statistics& counted) {
  const bool is_counted = counted.hits + counted.misses != 0;
  const double even = rows > 0 ? std::min(1.0, static_cast<double>(slots) / static_cast<double>(rows)) : 0.0;
  cache::explanation report;
  report.hit_rate = is_counted ? counted.hit_rate() : even;
  move_facts cold = whole, hot = whole;
  const std::int64_t hits = std::llround(report.hit_rate * static_cast<double>(whole.positions));
  hot.table_space = device_space::name;
  hot.table_bytes = rows > 0 ? whole.table_bytes / rows * slots : 0;
  hot.positions = std::min(hits, whole.positions);
  cold.positions = whole.positions - hot.positions;
  const bool both_ways = cold.action == verb::step || cold.action == verb::scatter_add;
  report.link_bytes = cold.positions * cold.row_bytes * (both_ways ? 2 : 1);

  const path_cost miss = costs_of(profile, cold)[path_kind::direct];
  const path_cost hit = costs_of(profile, hot)[path_kind::direct];
  const double start = 2 * miss.start_us * 1e-6;
  const double cold_moves = miss.rows_us(cold.positions) * 1e-6;
  const double hot_moves = hit.rows_us(hot.positions) * 1e-6;
  explanation::candidate line;
  line.path = path_kind::direct;
  line.picked = true;
  line.seconds = start + std::max(cold_moves, hot_moves);
  line.gb_per_s = static_cast<double>(whole.positions) * static_cast<double>(whole.row_bytes) /
                  std::max(line.seconds, 1e-12) * 1e-9;
  line.reason = joined(
      in_words(100 * report.hit_rate, 1, "% hits"),
      (is_counted ? " so far" : ", if all rows are equally likely"), ", ", in_words(hot_moves * 1e3, 3, "ms"),
      "; misses ", in_words(static_cast<double>(report.link_bytes) * 1e-6, 3, "MB"), " over the link, ",
      in_words(cold_moves * 1e3, 3, "ms"), "; path::automatic is path::direct for a cached table.");
  report.picked = path_kind::direct;
  report.candidates.push_back(std::move(line));
  return report;
}

}  // namespace ferry::detail

namespace ferry {

/// The time of a verb by the profile's rates for `n` rows of a cached table, with the expected hit rate and
/// the bytes over the link. The hit rate is that of the verbs so far; before the first one, the share of the
/// rows that fit into the cache. Arguments and errors are those of explain for any table. Nothing is moved.
/// Waits for the verbs in flight.
template <class BatchSpace = void, class Table, class Policy, class Exec = Kokkos::DefaultExecutionSpace>
[[nodiscard]] cache::explanation explain(verb kind, const cached_table<Table, Policy>& table, std::int64_t n,
                                         const Exec& exec = Exec(), const explain_options& options = {}) {
  detail::require_cached_verb<Exec, detail::chosen_policies<>>();
  using batch_space =
      std::conditional_t<std::is_void_v<BatchSpace>, detail::usual_batch_space<Exec>, BatchSpace>;
  static_assert(MemorySpace<batch_space>, "ferry: explain's template argument is the batch's memory space.");
  if (n < 0)
    throw invalid_argument(detail::joined("ferry::explain: the number of rows is ", n, ", must be >= 0"));
  const auto ref = table.ref();
  const auto known = detail::profile_holder<Exec>::get(exec);
  const auto slots = static_cast<std::int64_t>(table.slots());
  auto explanation = detail::explain_cached<Exec>(
      known->profile, detail::facts_of<Exec, batch_space>(kind, ref, n, options.planned), ref.rows(), slots,
      table.statistics());
  explanation.call = detail::joined(name(kind), " of ", n, " rows, cached table ", ref.describe(), " with ",
                                    slots, " rows in device_space, batch in ", batch_space::name,
                                    (options.planned ? ", with a plan" : ""));
  explanation.profile = known->origin;
  return explanation;
}

}  // namespace ferry
