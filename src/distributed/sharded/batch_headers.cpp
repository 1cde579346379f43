// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/batch_headers.hpp>

#include <ferry/distributed/sharded/detail/shard_places.hpp>

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace ferry::detail {

namespace {

/// A rank's words to the others.
struct header {
  batch_findings findings;
  batch_offer offer;
};

using counts_type = std::vector<std::int64_t>;

counts_type counts_of(const item_groups& groups, std::size_t ranks) {
  counts_type counts(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto [first, last] = groups.group(static_cast<int>(r));
    counts[r] = last - first;
  }
  return counts;
}

/// The headers of all ranks, with the counts of each.
void gather_headers(collective& call, const header& own_header, const counts_type& counts,
                    batch_headers& headers) {
  const std::size_t count_bytes = counts.size() * sizeof(std::int64_t);
  std::vector<std::byte> message(sizeof own_header + count_bytes);
  std::memcpy(message.data(), &own_header, sizeof own_header);
  if (count_bytes != 0) std::memcpy(message.data() + sizeof own_header, counts.data(), count_bytes);
  const auto messages = call.agree_on(std::span<const std::byte>(message));
  if (own_header.offer.is_made != 0) call.begin_reads();
  headers.findings.clear();
  headers.offers.clear();
  if (count_bytes != 0) headers.counts.resize(counts.size() * counts.size());
  for (std::size_t r = 0; r < static_cast<std::size_t>(call.ranks()); ++r) {
    const std::byte* const arrived = messages.data() + r * message.size();
    header rank_header;
    std::memcpy(&rank_header, arrived, sizeof rank_header);
    headers.findings.push_back(rank_header.findings);
    headers.offers.push_back(rank_header.offer);
    if (count_bytes != 0)
      std::memcpy(headers.counts.data() + r * counts.size(), arrived + sizeof rank_header, count_bytes);
  }
}

}  // namespace

std::vector<std::int64_t> in_begin_of(collective& call, const item_groups& groups) {
  const counts_type counts = counts_of(groups, static_cast<std::size_t>(call.ranks()));
  counts_type begin(counts.size() + 1, 0);
  std::vector<outgoing_part> outgoing(counts.size());
  std::vector<incoming_part> incoming(counts.size());
  for (std::size_t r = 0; r < counts.size(); ++r) {
    outgoing[r] = {reinterpret_cast<const std::byte*>(&counts[r]), sizeof counts[r]};
    incoming[r] = {reinterpret_cast<std::byte*>(&begin[r + 1]), sizeof begin[r + 1]};
  }
  call.exchange(outgoing, incoming);
  for (std::size_t r = 0; r < counts.size(); ++r) begin[r + 1] += begin[r];
  return begin;
}

batch_headers exchange_headers(collective& call, const buckets& items, batch_findings scanned,
                               const batch_offer& offer) {
  scanned.out_of_range = items.report.out_of_range;
  scanned.first_position = items.report.first_position;
  scanned.first_index = items.report.first_index;
  scanned.first_bag = items.report.first_bag;
  scanned.positions = items.positions;
  scanned.signed_indices = items.signed_indices ? 1 : 0;
  batch_headers headers;
  if (call.is_whole()) {
    headers.findings.push_back(scanned);
    return headers;
  }
  const auto ranks = static_cast<std::size_t>(call.ranks());
  if (call.ranks() > kernels::most_shards) {
    gather_headers(call, {scanned, offer}, {}, headers);
    headers.in_begin = in_begin_of(call, items);
    return headers;
  }
  gather_headers(call, {scanned, offer}, counts_of(items, ranks), headers);
  headers.in_begin.assign(ranks + 1, 0);
  for (std::size_t r = 0; r < ranks; ++r)
    headers.in_begin[r + 1] = headers.in_begin[r] + headers.count(r, call.rank());
  return headers;
}

batch_headers exchange_offers(collective& call, batch_headers planned, const batch_findings& batch,
                              const batch_offer& offer) {
  if (call.is_whole())
    planned.findings.assign(1, batch);
  else
    gather_headers(call, {batch, offer}, {}, planned);
  return planned;
}

bool can_pull(const std::vector<batch_offer>& offers, bool (*reach)(int device, int memory)) {
  constexpr int most = 64;
  std::bitset<most> owners, memories;
  if (offers.size() > static_cast<std::size_t>(kernels::most_shards)) return false;
  for (const batch_offer& offer : offers) {
    if (offer.is_made == 0) return false;
    for (const int device : {offer.owner_device, offer.lists_device, offer.values_device})
      if (device >= most) return false;
    owners.set(static_cast<std::size_t>(offer.owner_device));
    for (const int device : {offer.lists_device, offer.values_device})
      if (device >= 0) memories.set(static_cast<std::size_t>(device));
  }
  for (std::size_t owner = 0; owner < most; ++owner) {
    if (!owners[owner]) continue;
    for (std::size_t memory = 0; memory < most; ++memory)
      if (memory != owner && memories[memory] && !reach(static_cast<int>(owner), static_cast<int>(memory)))
        return false;
  }
  return true;
}

}  // namespace ferry::detail
