// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/pull_rows.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::detail {

offered_values values_for(int owner, const batch_headers& headers, std::size_t unit) {
  offered_values offered;
  for (std::size_t r = 0; r < headers.offers.size(); ++r) {
    const std::int64_t count = headers.count(r, owner);
    if (count == 0) continue;
    const batch_offer& offer = headers.offers[r];
    offered.items += count;
    if (offered.lowest == nullptr || offer.values < offered.lowest) offered.lowest = offer.values;
    offered.aligned = offered.aligned && reinterpret_cast<std::uintptr_t>(offer.values) % unit == 0 &&
                      offer.value_step % static_cast<std::int64_t>(unit) == 0;
    offered.on_devices = offered.on_devices && offer.values_device >= 0;
  }
  return offered;
}

kernels::join_lists lists_for(int owner, const batch_headers& headers, const std::byte* lowest,
                              std::size_t unit) {
  kernels::join_lists join{};
  join.ranks = static_cast<int>(headers.offers.size());
  std::int64_t first = 0;
  for (std::size_t r = 0; r < headers.offers.size(); ++r) {
    const batch_offer& offer = headers.offers[r];
    std::int64_t before = 0;
    for (int lower = 0; lower < owner; ++lower) before += headers.count(r, lower);
    join.place[r] = offer.place + before;
    join.local[r] = offer.rows + before;
    // The difference of addresses of different arrays, as numbers.
    const auto shift =
        reinterpret_cast<std::uintptr_t>(offer.values) - reinterpret_cast<std::uintptr_t>(lowest);
    join.values[r] = static_cast<std::int64_t>(shift / unit);
    join.step[r] = offer.value_step / static_cast<std::int64_t>(unit);
    join.begin[r] = first;
    first += headers.count(r, owner);
  }
  return join;
}

}  // namespace ferry::detail
