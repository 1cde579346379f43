// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/routing.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace ferry::detail {

batch_notices exchange_notices(collective& call, std::span<const std::byte> notice,
                               std::span<const std::int64_t> counts) {
  const std::size_t ranks = counts.size();
  std::vector<std::byte> mine(notice.begin(), notice.end());
  mine.resize(notice.size() + counts.size_bytes());
  std::memcpy(mine.data() + notice.size(), counts.data(), counts.size_bytes());
  batch_notices arrived;
  arrived.notices.resize(ranks * notice.size());
  arrived.counts.resize(ranks * ranks);
  arrived.in_begin.assign(ranks + 1, 0);
  const auto all = call.all_gather(std::span<const std::byte>(mine));
  const auto here = static_cast<std::size_t>(call.rank());
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::byte* const message = all.data() + r * mine.size();
    std::memcpy(arrived.notices.data() + r * notice.size(), message, notice.size());
    std::memcpy(arrived.counts.data() + r * ranks, message + notice.size(), counts.size_bytes());
    arrived.in_begin[r + 1] = arrived.in_begin[r] + arrived.counts[r * ranks + here];
  }
  return arrived;
}

}  // namespace ferry::detail
