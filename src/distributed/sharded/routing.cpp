// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/routing.hpp>

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

}  // namespace

route_parts parts_of(bool back, const route_groups& route, const std::vector<std::int64_t>& in_begin,
                     std::byte* batch, std::byte* shard, std::size_t row_bytes) {
  const std::size_t ranks = in_begin.size() - 1;
  route_parts parts{std::vector<outgoing_part>(ranks), std::vector<incoming_part>(ranks)};
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto [first, last] = route.group(static_cast<int>(r));
    std::byte* const of_batch = batch + static_cast<std::size_t>(first) * row_bytes;
    std::byte* const of_shard = shard + static_cast<std::size_t>(in_begin[r]) * row_bytes;
    const std::size_t batch_bytes = static_cast<std::size_t>(last - first) * row_bytes;
    const std::size_t shard_bytes = static_cast<std::size_t>(in_begin[r + 1] - in_begin[r]) * row_bytes;
    parts.outgoing[r] = back ? outgoing_part{of_shard, shard_bytes} : outgoing_part{of_batch, batch_bytes};
    parts.incoming[r] = back ? incoming_part{of_batch, batch_bytes} : incoming_part{of_shard, shard_bytes};
  }
  return parts;
}

batch_headers exchange_headers(collective& call, const route_groups& route, batch_findings scanned,
                               const batch_offer& offer) {
  scanned.out_of_range = route.report.out_of_range;
  scanned.first_position = route.report.first_position;
  scanned.first_index = route.report.first_index;
  scanned.first_bag = route.report.first_bag;
  scanned.positions = route.positions;
  scanned.signed_indices = route.signed_indices ? 1 : 0;
  batch_headers headers;
  if (call.is_whole()) {
    headers.findings.push_back(scanned);
    return headers;
  }
  const auto ranks = static_cast<std::size_t>(call.ranks());
  const header own_header{scanned, offer};
  std::vector<std::byte> message(sizeof own_header + ranks * sizeof(std::int64_t));
  std::memcpy(message.data(), &own_header, sizeof own_header);
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto [first, last] = route.group(static_cast<int>(r));
    const std::int64_t count = last - first;
    std::memcpy(message.data() + sizeof own_header + r * sizeof count, &count, sizeof count);
  }
  const auto messages = call.agree_on(std::span<const std::byte>(message));
  if (offer.is_made != 0) call.begin_reads();
  headers.counts.resize(ranks * ranks);
  headers.in_begin.assign(ranks + 1, 0);
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::byte* const arrived = messages.data() + r * message.size();
    header rank_header;
    std::memcpy(&rank_header, arrived, sizeof rank_header);
    headers.findings.push_back(rank_header.findings);
    headers.offers.push_back(rank_header.offer);
    std::memcpy(headers.counts.data() + r * ranks, arrived + sizeof rank_header,
                ranks * sizeof(std::int64_t));
    headers.in_begin[r + 1] =
        headers.in_begin[r] + headers.counts[r * ranks + static_cast<std::size_t>(call.rank())];
  }
  return headers;
}

batch_headers exchange_offers(collective& call, batch_headers planned, const batch_findings& batch,
                              const batch_offer& offer) {
  const header rank_facts{batch, offer};
  const auto arrived = call.agree_on(std::span<const header>(&rank_facts, 1));
  call.begin_reads();
  planned.findings.clear();
  planned.offers.clear();
  for (const header& rank_header : arrived) {
    planned.findings.push_back(rank_header.findings);
    planned.offers.push_back(rank_header.offer);
  }
  return planned;
}

bool can_pull(const std::vector<batch_offer>& offers, bool (*reach)(int device, int memory)) {
  constexpr int most = 64;
  std::bitset<most> owners, memories;
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
