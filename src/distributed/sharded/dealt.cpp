// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/shardings/dealt.hpp>

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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
