// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/policy/rounding.hpp>
#include <ferry/policy/step_count.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

/// The policies of verbs that write to sharded tables.
namespace ferry::detail {

/// duplicates::reject has been decided by all ranks before a shard is written.
template <class Duplicates>
using shard_duplicates_t = std::conditional_t<Duplicates::forbids, duplicates::assume_unique, Duplicates>;

/// Adds the rows of the shards of this thread that are named more than once.
template <class Table, class Wire>
void count_duplicates(const collective& call, const Table& table, const routing<Wire>& routes,
                      batch_findings& findings) {
  for (int r = call.first(); r < call.last(); ++r) {
    if (routes.batch.everywhere && r != 0) continue;  // all ranks see the same rows: rank 0 counts them
    const auto named = routes.rows_for(r);
    std::vector<std::int64_t> rows(named.data(), named.data() + named.rows());
    std::sort(rows.begin(), rows.end());
    for (auto row = rows.begin(); row != rows.end();) {
      const auto end = std::upper_bound(row, rows.end(), *row);
      if (end - row > 1) {
        ++findings.duplicates;
        findings.first_row =
            std::min(findings.first_row, static_cast<std::uint64_t>(table.global_row(r, *row)));
      }
      row = end;
    }
  }
}

/// The policies and facts of a verb that writes. ReadsInPlace: it takes values_in_place; Scans: it has looked
/// at its values.
template <class Summing, bool ReadsInPlace = false, bool Scans = false>
struct write_choice : Summing {
  using bounds_policy = typename Summing::chosen::template get<bounds_category, bounds::check>;
  static constexpr bool reads_in_place = ReadsInPlace;
  static constexpr bool scans = Scans;
};

/// True if a kernel of the verb may read values in the batches of other ranks.
template <class Chosen>
inline constexpr bool reads_where_they_are =
    std::is_same_v<shard_path_t<Chosen>, path::automatic> || in_batch_order<shard_path_t<Chosen>>;

/// The policies that a verb on a shard gets; bounds::unchecked is that of the plans, too.
template <class Chosen, class Duplicates>
using shard_policies = policies<shard_path_t<Chosen>, bounds::unchecked, shard_duplicates_t<Duplicates>>;

/// The policies of a step on a shard. Gradients have been scanned before.
template <class Chosen, class Duplicates>
using shard_step_policies = policies<shard_path_t<Chosen>, bounds::unchecked, shard_duplicates_t<Duplicates>,
                                     typename Chosen::template get<step_count_category, step_count::global>,
                                     typename Chosen::template get<rounding_category, rounding::nearest>>;

}  // namespace ferry::detail
