// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace ferry::detail {

bool shows_batches(const collective& call) {
  if (call.is_whole() || call.ranks() > kernels::most_shards) return false;
  if (call.shares_addresses()) return true;
  const rank_lanes* const lanes = rank_lanes_of(call);
  return lanes != nullptr && lanes->serve();
}

lane_plan plan_lane(const item_groups& items, int rank, lane_content content, bool has_factors,
                    std::int64_t value_rows, std::int64_t step) {
  constexpr std::int64_t unit = 256;  // a part begins where the widest loads of kernels may
  lane_plan plan;
  const auto [first, last] = items.group(rank);
  plan.items = items.items() - (last - first);
  std::int64_t bytes = 0;
  const auto append = [&](std::int64_t& part, std::int64_t size) {
    part = bytes;
    bytes += (size + unit - 1) / unit * unit;
  };
  constexpr auto item = static_cast<std::int64_t>(sizeof(std::int64_t));
  if (content.shared) append(plan.place, plan.items * item);
  if (content.rows) append(plan.rows, plan.items * item);
  if (has_factors) append(plan.factors, plan.items * item);
  if (step != 0) append(plan.values, (content.shared ? value_rows : plan.items) * step);
  plan.bytes = static_cast<std::size_t>(std::max(bytes, unit));
  return plan;
}

bool open_lanes(collective& call, rank_lanes& lanes, const lane_functions& functions,
                const std::vector<batch_offer>& offers) {
  std::vector<std::uint64_t> numbers;
  std::vector<int> devices;
  for (const batch_offer& offer : offers) {
    if (offer.is_made == 0) return false;
    numbers.push_back(offer.lane);
    devices.push_back(offer.owner_device);
  }
  return lanes.open(call, numbers, devices, functions);
}

void localize_offers(const rank_lanes& lanes, int rank, bool on_host, batch_headers& headers) {
  const int device = headers.offers[static_cast<std::size_t>(rank)].owner_device;
  for (std::size_t r = 0; r < headers.offers.size(); ++r) {
    if (static_cast<int>(r) == rank) continue;
    batch_offer& offer = headers.offers[r];
    std::int64_t before = 0;  // items of lower owners in the lane
    for (int lower = 0; lower < rank; ++lower)
      if (lower != static_cast<int>(r)) before += headers.count(r, lower);
    std::byte* const lane = offer.lane == 0 ? nullptr : lanes.data(static_cast<int>(r));
    const auto list = [&]<class Element>(std::int64_t begin, std::type_identity<Element>) {
      return lane == nullptr || begin < 0 ? nullptr : reinterpret_cast<const Element*>(lane + begin) + before;
    };
    offer.place = list(offer.lane_place, std::type_identity<std::int64_t>{});
    offer.rows = list(offer.lane_rows, std::type_identity<std::int64_t>{});
    offer.factors = list(offer.lane_factors, std::type_identity<double>{});
    offer.values = nullptr;
    if (lane != nullptr && offer.lane_values >= 0)
      offer.values = lane + offer.lane_values + (offer.has_all_values != 0 ? 0 : before * offer.lane_step);
    offer.value_step = offer.lane_step;
    offer.lists_device = offer.values_device = on_host ? -1 : device;
    offer.is_share = 1;
  }
}

}  // namespace ferry::detail
