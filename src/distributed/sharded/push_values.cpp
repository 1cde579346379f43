// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/push_values.hpp>
#include <ferry/rows/detail/claim_slots.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ferry::detail {

bool can_push(const batch_headers& headers, std::int64_t rows) {
  for (std::size_t owner = 0; owner < headers.offers.size(); ++owner) {
    const batch_offer& offer = headers.offers[owner];
    if (offer.is_made == 0 || offer.pushes == 0) return false;
    std::int64_t items = 0;
    for (std::size_t r = 0; r < headers.offers.size(); ++r)
      items += headers.count(r, static_cast<int>(owner));
    if (items != 0 && !kernels::winner_table::fits(items, rows)) return false;
  }
  return true;
}

bool lacks_values(const batch_headers& headers) {
  const auto is_made = [](const batch_offer& offer) { return offer.is_made != 0; };
  const auto pushes = [](const batch_offer& offer) { return offer.pushes != 0; };
  return std::all_of(headers.offers.begin(), headers.offers.end(), is_made) &&
         std::any_of(headers.offers.begin(), headers.offers.end(), pushes);
}

}  // namespace ferry::detail
