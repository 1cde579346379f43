// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/batch_offer.hpp>

#include <bitset>
#include <cstddef>
#include <vector>

namespace ferry::detail {

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
