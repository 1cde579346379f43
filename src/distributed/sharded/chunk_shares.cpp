// SPDX-License-Identifier: Apache-2.0
#include "chunk_shares.hpp"

#include "sharded_rows.hpp"

#include <ferry/io/detail/checkpoint_array.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ferry::detail {

chunk_shares::chunk_shares(const manifest_array& in_file, const checkpoint_array& array, int ranks,
                           bool replicas)
    : file_(&in_file), element_bytes_(array.schema.element_bytes), shares_(static_cast<std::size_t>(ranks)) {
  const sharded_rows* const rows = rows_of_shards(array);
  for (std::size_t place = 0; place < in_file.chunk_count(); ++place) {
    if (rows != nullptr && replicas && rows->spread().replicates()) {
      for (auto& share : shares_) share.push_back(place);
      continue;
    }
    std::size_t who = 0;
    if (rows != nullptr) {
      const chunk_span span = span_of(place);
      const auto owner = [&](std::uint64_t byte) {
        return rows->spread().owner(static_cast<std::int64_t>(byte / rows->row_bytes()));
      };
      const int first = owner(span.offset), last = owner(span.offset + span.bytes - 1);
      who = rows->spread().replicates() || first != last ? place % shares_.size()
                                                         : static_cast<std::size_t>(first);
    }
    shares_[who].push_back(place);
  }
  for (const auto& share : shares_) rounds_ = std::max(rounds_, (share.size() + at_once - 1) / at_once);
}

std::span<const std::size_t> chunk_shares::places_of(int rank, std::size_t round) const {
  const auto& share = places_of(rank);
  const std::size_t begin = std::min(share.size(), round * at_once);
  const std::size_t end = std::min(share.size(), begin + at_once);
  return std::span(share).subspan(begin, end - begin);
}

void rank_buffers::exchange(collective& call, const std::vector<std::size_t>& expected) {
  const auto rank = static_cast<std::size_t>(call.rank());
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (r == rank) continue;
    in[r].resize(expected[r]);
    outgoing_[r] = {out[r].data(), out[r].size()};
    incoming_[r] = {in[r].data(), in[r].size()};
  }
  call.exchange(outgoing_, incoming_);
  std::swap(in[rank], out[rank]);
}

int chunk_threads_of_rank(int local_ranks) { return std::max(1, chunk_threads() / local_ranks); }

}  // namespace ferry::detail
