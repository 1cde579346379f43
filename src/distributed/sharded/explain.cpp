// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/distributed/sharded/explain.hpp>
#include <ferry/distributed/shared/detail/rank_lanes.hpp>

#include <cstdio>
#include <string>
#include <utility>

namespace ferry {

std::string sharded_explanation::to_string() const {
  std::string text = call + "\n";
  for (const auto& way : candidates) {
    char line[120];
    std::snprintf(line, sizeof line, "%c %-11s %10lld rows, %10lld from other ranks, %9.3f MB  ",
                  way.picked ? '*' : ' ', way.path.c_str(), static_cast<long long>(way.rows),
                  static_cast<long long>(way.rows_from_others),
                  static_cast<double>(way.bytes_from_others) * 1e-6);
    text.append(line).append(way.reason).append("\n");
  }
  if (!writes.empty()) text.append("  writes: ").append(writes).append("\n");
  return text;
}

std::string detail::explain_writes(const communicator& comm, bool reaches) {
  const transport& group = *comm.group();
  if (comm.size() == 1 || comm.acting_rank() < 0) return {};
  const std::string by_messages = "batches go to the owners in packed messages: ";
  if (!reaches) return by_messages + "the instance is of a host, in a program with devices.";
  if (comm.size() > kernels::most_shards)
    return by_messages + "the group has more than " + std::to_string(kernels::most_shards) + " ranks.";
  if (group.shares_addresses())
    return "kernels of the owners read the batches of the other threads in place, if they reach them.";
  const auto* const lanes = static_cast<const rank_lanes*>(comm.group()->lanes().get());
  if (lanes != nullptr && !lanes->serve()) return by_messages + lanes->why_not() + ".";
  return "kernels of the owners read the batches of the other processes in memory that these share" +
         std::string(lanes == nullptr ? ", if they can; no call has tried yet." : ".");
}

sharded_explanation detail::explain_batch(const batch_facts& facts) {
  auto by_position = facts.by_position, exchange = facts.exchange;
  by_position.path = "by position";
  exchange.path = "exchange";
  exchange.picked = facts.prefers_exchange;
  by_position.picked = !exchange.picked;
  by_position.reason = "a row for each position.";
  exchange.reason = "each different row once, then a copy to its positions; ";
  if (exchange.picked)
    exchange.reason += "the plan shows that it halves the rows.";
  else if (by_position.rows_from_others == 0)
    exchange.reason += "no row comes from another rank.";
  else if (facts.has_plan)
    exchange.reason += "more than half of the rows are different.";
  else
    exchange.reason += "taken on request, or where a row_plan has counted the rows.";
  sharded_explanation explanation;
  explanation.call = "gather of " + std::to_string(facts.positions) + " rows, table " + facts.table +
                     (facts.rank >= 0 ? ", rank " + std::to_string(facts.rank) : std::string(", all ranks")) +
                     (facts.is_planned ? ", with a plan" : "");
  explanation.candidates = {by_position, exchange};
  if (exchange.picked) std::swap(explanation.candidates[0], explanation.candidates[1]);
  if (facts.reaches_peers) {
    auto peer = explanation.candidates[0];
    peer.path = "peer";
    peer.reason =
        exchange.picked ? "each different row once, then a copy to its positions" : "a row for each position";
    peer.reason += "; kernels of this rank read the shards of all ranks.";
    explanation.candidates[0].picked = false;
    explanation.candidates.insert(explanation.candidates.begin(), peer);
  }
  explanation.picked = explanation.candidates[0].path;
  explanation.writes = facts.writes;
  return explanation;
}

}  // namespace ferry
