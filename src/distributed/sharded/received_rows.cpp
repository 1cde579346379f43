// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/received_rows.hpp>

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
  }
  return offered;
}

namespace {

/// The lists begin where list(rank, items before those of the owner) says.
template <class List>
kernels::join_lists lists_from(int owner, const batch_headers& headers, const List& list) {
  kernels::join_lists join{};
  join.ranks = static_cast<int>(headers.offers.size());
  std::int64_t first = 0;
  for (std::size_t r = 0; r < headers.offers.size(); ++r) {
    list(join, r, first);
    join.step[r] = 1;
    join.begin[r] = first;
    first += headers.count(r, owner);
  }
  return join;
}

}  // namespace

kernels::join_lists lists_for(int owner, const batch_headers& headers) {
  return lists_from(owner, headers, [&](kernels::join_lists& join, std::size_t r, std::int64_t) {
    const batch_offer& offer = headers.offers[r];
    std::int64_t before = 0;
    for (int lower = 0; lower < owner && offer.is_share == 0; ++lower) before += headers.count(r, lower);
    join.place[r] = offer.place == nullptr ? nullptr : offer.place + before;
    join.local[r] = offer.rows == nullptr ? nullptr : offer.rows + before;
    join.factor[r] = offer.factors == nullptr ? nullptr : offer.factors + before;
  });
}

kernels::join_lists joined_lists_for(int owner, const batch_headers& headers, const std::int64_t* place) {
  return lists_from(owner, headers, [&](kernels::join_lists& join, std::size_t r, std::int64_t first) {
    join.place[r] = place + first;
  });
}

void take_values(kernels::join_lists& join, const batch_headers& headers, const std::byte* lowest,
                 std::size_t unit) {
  for (std::size_t r = 0; r < headers.offers.size(); ++r) {
    const batch_offer& offer = headers.offers[r];
    // The difference of addresses of different arrays, as numbers.
    const auto shift =
        reinterpret_cast<std::uintptr_t>(offer.values) - reinterpret_cast<std::uintptr_t>(lowest);
    join.values[r] = static_cast<std::int64_t>(shift / unit);
    join.step[r] = offer.value_step / static_cast<std::int64_t>(unit);
  }
}

}  // namespace ferry::detail
