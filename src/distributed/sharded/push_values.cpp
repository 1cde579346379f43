// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/push_values.hpp>
#include <ferry/rows/detail/write_winners.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ferry::detail {

bool can_push(const batch_headers& headers, std::int64_t rows) {
  const std::size_t ranks = headers.offers.size();
  std::int64_t most = 0;  // positions of a rank
  for (std::size_t r = 0; r < ranks; ++r) {
    const batch_offer& offer = headers.offers[r];
    if (offer.is_made == 0 || offer.pushes == 0) return false;
    std::int64_t own_items = 0, items = 0;  // of the batch of the rank, and for its shard
    for (std::size_t partner = 0; partner < ranks; ++partner) {
      own_items += headers.count(r, static_cast<int>(partner));
      items += headers.count(partner, static_cast<int>(r));
    }
    if (items != 0 && !kernels::winner_table::fits(items, rows)) return false;
    most = std::max(most, own_items);
  }
  return most >= fewest_pushed;
}

bool lacks_values(const batch_headers& headers) {
  const auto is_made = [](const batch_offer& offer) { return offer.is_made != 0; };
  const auto lacks = [](const batch_offer& offer) { return offer.lacks_values != 0; };
  return std::all_of(headers.offers.begin(), headers.offers.end(), is_made) &&
         std::any_of(headers.offers.begin(), headers.offers.end(), lacks);
}

}  // namespace ferry::detail
