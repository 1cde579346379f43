// SPDX-License-Identifier: Apache-2.0

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/distributed/sharded/detail/read_shards.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/distributed/sharded/explain.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/distributed/sharded/shardings.hpp>
#include <ferry/distributed/shared/detail/rank_windows.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <queue>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace ferry::detail {

namespace {

/// A rank's words about its shard: a handle, or why it has none.
struct shard_offer {
  shared_handle handle;
  short_text<256> trouble;
};

}  // namespace

opened_shards open_shards(collective& call, const communicator& comm,
                          const std::shared_ptr<access_tracker>& accesses, int device,
                          function_ref<shared_handle()> share_own,
                          std::shared_ptr<std::byte> (*open)(const shared_record&, int device)) {
  opened_shards opened;
  shard_offer own_offer;
  opened.device = device;
  comm.group()->wait_before_calls(accesses, false);
  try {
    own_offer.handle = share_own();
  } catch (const std::exception& lost) {
    own_offer.trouble = short_text<256>(lost.what());
  }
  const auto offers = call.all_gather(std::span<const shard_offer>(&own_offer, 1));
  const auto open_all = [&] {
    opened.data.resize(offers.size());
    for (std::size_t r = 0; r < offers.size(); ++r) {
      if (static_cast<int>(r) == call.rank()) continue;
      const shard_offer& offer = offers[r];
      if (offer.trouble.text[0] != '\0') {
        opened.why_not = "rank " + std::to_string(r) + " could not share its own: ";
        opened.why_not += offer.trouble.view();
        return;
      }
      opened.data[r] = open(offer.handle.record(), device);
    }
    opened.reads = std::make_shared<access_tracker>(device);
    comm.group()->wait_before_calls(opened.reads, true);
  };
  try {
    open_all();
  } catch (const std::exception& lost) {
    opened.why_not = lost.what();
    opened.reads.reset();
  }
  const std::int32_t vote = opened.reads != nullptr ? 1 : 0;
  const auto votes = call.all_gather(std::span<const std::int32_t>(&vote, 1));
  opened.by_all = std::find(votes.begin(), votes.end(), 0) == votes.end();
  return opened;
}

std::string why_unopened(const opened_shards& opened, const communicator& comm, int rank, int device) {
  const std::string shard = "this object does not hold that of rank " + std::to_string(rank);
  if (opened.reads != nullptr && opened.device == device) return {};
  if (opened.reads != nullptr)
    return shard + ", and has opened it for device " + std::to_string(opened.device) + ", not for device " +
           std::to_string(device);
  if (!opened.why_not.empty()) return shard + ": " + opened.why_not;
  return shard + (comm.group()->local_count() == comm.size()
                      ? "; make the table outside of communicator::run, by one process"
                      : ", which is in another process; processes reach each other's device memory alone");
}

}  // namespace ferry::detail

namespace ferry::sharding {

namespace {

/// More than any group has.
constexpr int most_ranks = 1 << 20;

}  // namespace

dealt::dealt(std::span<const int> owners) {
  const auto deal = std::make_shared<rows_of_ranks>();
  deal->owners.assign(owners.begin(), owners.end());
  std::vector<std::int64_t> counts;
  std::uint64_t digest = 0xcbf29ce484222325u;  // FNV-1a
  for (std::size_t row = 0; row < owners.size(); ++row) {
    const int rank = owners[row];
    if (rank < 0 || rank >= most_ranks)  // the group is known later, and rows are counted for each rank
      throw invalid_argument("ferry::sharding::dealt: row " + std::to_string(row) + " is dealt to rank " +
                             std::to_string(rank) + ", must be in [0, " + std::to_string(most_ranks) + ")");
    const auto place = static_cast<std::size_t>(rank);
    if (place >= counts.size()) counts.resize(place + 1, 0);
    deal->places.push_back(counts[place]++);
    digest = (digest ^ static_cast<std::uint64_t>(rank)) * 0x100000001b3u;
  }
  deal->digest = digest;
  deal->begins.assign(1, 0);
  for (const std::int64_t count : counts) deal->begins.push_back(deal->begins.back() + count);
  auto numbers = std::make_shared<tensor<std::int64_t, mapped_space>>("sharding::dealt", owners.size());
  for (std::size_t row = 0; row < owners.size(); ++row)
    numbers->data()[deal->begin_of(owners[row]) + deal->places[row]] = static_cast<std::int64_t>(row);
  deal->numbers = numbers->data();
  deal->memory = std::move(numbers);
  deal_ = deal;
}

dealt dealt::by_load(std::span<const double> loads, int ranks) {
  if (ranks < 1)
    throw invalid_argument("ferry::sharding::dealt::by_load: there are " + std::to_string(ranks) +
                           " ranks, must be >= 1");
  std::vector<std::size_t> rows(loads.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  for (const std::size_t row : rows)
    if (!std::isfinite(loads[row]) || loads[row] < 0)
      throw invalid_argument("ferry::sharding::dealt::by_load: the load of row " + std::to_string(row) +
                             " is " + std::to_string(loads[row]) + ", must be finite and >= 0");
  std::stable_sort(rows.begin(), rows.end(),
                   [&](std::size_t a, std::size_t b) { return loads[a] > loads[b]; });
  // The load, the rows and the number of a rank; rows of no load go to the rank with the fewest.
  using rank_load = std::tuple<double, std::size_t, int>;
  std::priority_queue<rank_load, std::vector<rank_load>, std::greater<>> least;
  for (int rank = 0; rank < ranks; ++rank) least.emplace(0.0, 0, rank);
  std::vector<int> owners(loads.size());
  for (const std::size_t row : rows) {
    const auto [load, count, rank] = least.top();
    least.pop();
    owners[row] = rank;
    least.emplace(load + loads[row], count + 1, rank);
  }
  return dealt(owners);
}

void dealt::check(int ranks) const {
  if (deal_ == nullptr)
    throw invalid_argument(
        "ferry::sharding::dealt: no rows are dealt; pass the table a dealt of an array or of a function");
  if (deal_->begins.size() <= static_cast<std::size_t>(ranks) + 1) return;
  const auto bad =
      std::find_if(deal_->owners.begin(), deal_->owners.end(), [ranks](int owner) { return owner >= ranks; });
  throw invalid_argument("ferry::sharding::dealt: row " + std::to_string(bad - deal_->owners.begin()) +
                         " is dealt to rank " + std::to_string(*bad) + ", which is none of the " +
                         std::to_string(ranks) + " ranks of the group");
}

std::int64_t dealt::rows_of(int rank, std::int64_t rows, int) const {
  if (rows != static_cast<std::int64_t>(deal_->owners.size()))
    throw invalid_argument("ferry::sharding::dealt: " + std::to_string(deal_->owners.size()) +
                           " rows are dealt, but the table has " + std::to_string(rows));
  return deal_->begin_of(rank + 1) - deal_->begin_of(rank);
}

}  // namespace ferry::sharding

namespace ferry::detail {

std::int64_t equal_steps(std::string_view verb, int first, int last,
                         function_ref<std::int64_t(int)> steps_of) {
  const std::int64_t count = steps_of(first);
  for (int rank = first + 1; rank < last; ++rank)
    if (const std::int64_t steps = steps_of(rank); steps != count)
      throw invalid_argument("ferry::" + std::string(verb) + ": the shard of rank " + std::to_string(first) +
                             " of the state counts " + std::to_string(count) + " steps and that of rank " +
                             std::to_string(rank) + " counts " + std::to_string(steps) +
                             ": a step of some shards has failed; load a checkpoint, or call set_steps");
  return count;
}

void require_planned(const char* verb, const planned_tables& plan, bool by_group, const planned_tables& call,
                     function_ref<std::string()> describe) {
  const auto refuse = [&](const std::string& reason) {
    throw invalid_argument(std::string("ferry::") + verb + ": the plan " + reason + "; the table is " +
                           describe());
  };
  if (!(plan.comm == call.comm)) refuse("was made for a table of another communicator");
  if (plan.rows != call.rows) refuse("was made for tables of " + std::to_string(plan.rows) + " rows");
  if (plan.spread != call.spread) refuse("was made for tables with another sharding");
  if (!call.bounds.empty() && plan.bounds != call.bounds)
    refuse("was made with " + std::string(plan.bounds) + ", the verb can't change that to " +
           std::string(call.bounds));
  const int rank = call.first;
  if (by_group != (rank < 0) || (rank >= 0 && plan.first != rank))
    refuse("was made by a thread that acts for another rank, or for the group");
}

}  // namespace ferry::detail

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
  transport& group = *comm.group();
  if (comm.size() == 1 || comm.acting_rank() < 0) return {};
  const std::string by_messages = "batches go to the owners in packed messages: ";
  if (!reaches) return by_messages + "the instance is of a host, in a program with devices.";
  if (comm.size() > kernels::most_shards)
    return by_messages + "the group has more than " + std::to_string(kernels::most_shards) + " ranks.";
  if (group.shares_addresses())
    return "kernels of the owners read the batches of the other threads in place, if they reach them.";
  const auto* const windows = static_cast<const rank_windows*>(group.windows().get());
  if (windows == nullptr) return by_messages + "the ranks are processes.";
  return windows->serve() ? by_messages + "from device to device." : by_messages + windows->why_not() + ".";
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
