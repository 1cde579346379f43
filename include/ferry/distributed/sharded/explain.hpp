// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/fetch_rows.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/profile/explain.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ferry {

/// How the rows of a batch come from the ranks of a sharded table; see ferry::explain.
struct sharded_explanation {
  /// A way for the rows to come.
  struct candidate {
    std::string path;                    ///< "by position", "exchange" or "peer", as the policies of paths
    std::int64_t rows = 0;               ///< rows that the owners, or the rank itself, read
    std::int64_t rows_from_others = 0;   ///< of these, those of other ranks
    std::int64_t bytes_from_others = 0;  ///< in the elements of the table
    bool picked = false;                 ///< true if path::automatic takes it
    std::string reason;                  ///< one sentence
  };

  std::string call;                   ///< the call in words
  std::string picked;                 ///< the way that path::automatic takes
  std::vector<candidate> candidates;  ///< the picked one first
  std::string writes;                 ///< how scatter, step and other writes bring batches to the owners

  /// A table with one line per candidate; a star marks the picked one. The last line tells of writes.
  [[nodiscard]] std::string to_string() const;
};

namespace detail {

/// Facts of a batch that tell which way its rows come.
struct batch_facts {
  sharded_explanation::candidate by_position, exchange;  ///< the counts
  bool prefers_exchange = false;
  bool has_plan = false;    ///< a row_plan
  bool is_planned = false;  ///< a plan of either kind
  bool reaches_peers = false;
  std::int64_t positions = 0;
  std::string table;
  std::string writes;
  int rank = -1;
};
/// How batches of writes come to the owners in a group. `reaches`: kernels of the instance reach memory that
/// ranks share.
[[nodiscard]] std::string explain_writes(const communicator& comm, bool reaches);
/// The explanation of these facts.
[[nodiscard]] sharded_explanation explain_batch(const batch_facts& facts);

}  // namespace detail

/// How path::automatic fetches the rows of this rank's batch in gather(exec, table, indices, ...), with the
/// rows that travel on each path. Counts them by a look at the indices; moves no rows, and needs no other
/// rank.
///
///   exec     the execution space instance of the call
///   table    the sharded table
///   indices  the indices of the batch, a row_plan or a sharded_plan of them; indices outside of the table
///            are left out
///
/// The last line tells how batches of writes reach the owners, and why by messages if they do.
///
/// "peer" is listed if kernels of `exec` read the shards of all ranks, as path::peer does. It is taken
/// if those of all ranks can, and reach the arrays that the rows go to, of which this rank does not know.
///
/// Otherwise owners read their shards on the path that explain(verb::gather, table.shard(rank), n) names.
/// Throws invalid_argument if the indices are not a contiguous rank-1 array, or a plan does not fit the
/// table.
template <class Exec, class T, class Space, class Spread, class Indices>
[[nodiscard]] sharded_explanation explain(const Exec& exec, const sharded_table<T, Space, Spread>& table,
                                          const Indices& indices) {
  detail::require_execution_space<Exec>();
  const auto& named = detail::sharded_rows_named_by(indices);
  if constexpr (detail::is_sharded_plan<Indices>) {
    detail::require_sharded_plan<detail::chosen_policies<>>("explain", named, table);
  } else if constexpr (detail::is_plan<Indices>) {
    detail::require_plan<Exec, detail::chosen_policies<>>("explain", named, detail::whole_ref(table));
  } else {
    detail::require_indices<Indices>();
    detail::require_rank_one("explain", named);
  }
  const auto& list = detail::list_of_batch(named);
  const row_plan plan =
      detail::plan_of_list<bounds::skip>(exec, list, static_cast<std::int64_t>(table.rows()));
  const int rank = table.comm().acting_rank();
  const auto count = [&](const detail::buckets& items) {
    sharded_explanation::candidate candidate;
    candidate.rows = items.items();
    if (rank >= 0 && !items.everywhere)
      candidate.rows_from_others = candidate.rows - (items.group(rank).second - items.group(rank).first);
    candidate.bytes_from_others =
        candidate.rows_from_others * static_cast<std::int64_t>(table.width() * sizeof(T));
    return candidate;
  };
  detail::batch_facts facts;
  facts.by_position = count(detail::bucket_rows<bounds::skip>("explain", exec, table, plan));
  facts.exchange = count(detail::bucket_different_rows("explain", exec, table, plan));
  facts.prefers_exchange = detail::prefers_once(table, named);
  facts.has_plan = detail::is_plan<Indices>;
  facts.is_planned = detail::is_plan<Indices> || detail::is_sharded_plan<Indices>;
  facts.positions = detail::routed_positions(named);
  facts.table = table.describe();
  facts.rank = rank;
  facts.writes = detail::explain_writes(table.comm(), detail::reaches_shared_memory<Exec>);
  if constexpr (detail::reads_peers<Exec, sharded_table<T, Space, Spread>, device_space>) {
    const bool is_open =
        table.comm().group()->shares_addresses() || table.opened().by_all || Spread::replicates;
    facts.reaches_peers = rank >= 0 && is_open && detail::kernels_read_batch(exec, named) &&
                          detail::reaches_shards(exec, table);
    if constexpr (detail::is_sharded_plan<Indices>)
      if (facts.reaches_peers) facts.prefers_exchange = detail::prefers_once(table, list);
  }
  return detail::explain_batch(facts);
}

}  // namespace ferry
