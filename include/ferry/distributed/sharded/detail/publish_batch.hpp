// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/row_route.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/shared/detail/rank_lanes.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

/// Batches for the owners in other processes of the machine. They can't read arrays of a user's, so each rank
/// puts into its lane what they need: the rows of their items, and the values, packed in the order of the
/// items. So all reads over the link follow each other, and each value crosses once. The rank's own items
/// stay where they are.
namespace ferry::detail {

/// The functions for lanes that kernels of Exec read.
template <class Exec>
lane_functions lane_functions_of() {
  if constexpr (!is_host_exec<Exec> && shares_memory<device_space>())
    return {&make_device_lane<device_space>, &open_device_lane<device_space>};
  else
    return {&make_host_lane, &open_host_lane};
}

/// True if kernels of a rank may read batches of the others: where they are between threads, in lanes between
/// processes.
[[nodiscard]] bool shows_batches(const collective& call);

/// The parts of a lane, in bytes from its first.
struct lane_plan {
  std::int64_t items = 0;  ///< of the other ranks
  std::int64_t place = -1, rows = -1, factors = -1, values = -1;
  std::size_t bytes = 0;
};
/// Places of the lists that are asked for. The values have `value_rows` rows of `step` bytes; of the items if
/// `value_rows` is negative.
[[nodiscard]] lane_plan plan_lane(const route_groups& route, int rank, bool has_place, bool has_rows,
                                  bool has_factors, std::int64_t value_rows, std::int64_t step);

/// The parts of a batch that its lane is to have.
enum class lane_parts {
  lists,          ///< the rows of the items
  rows,           ///< the rows of the items and their values
  values,         ///< their values: the owners have the rows
  shared,         ///< places, rows, and all values: several items have one value
  shared_values,  ///< places and all values: the owners have the rows
};

/// Calls act(first, last, begin) for the items of other ranks, which `begin` items precede in the lane.
template <class Act>
void for_items_of_others(const route_groups& route, int rank, const Act& act) {
  const auto [first, last] = route.group(rank);
  if (first > 0) act(std::int64_t{0}, first, std::int64_t{0});
  if (last < route.routed()) act(last, route.routed(), first);
}

/// Puts the batch of an offer into the lane of its rank, if the ranks are processes. Blocks. Without memory
/// for it the offer is not made, and the batch travels by messages.
template <lane_parts Parts, class Exec, class Value, class Space>
void publish_batch(const collective& call, const Exec& exec, const route_groups& route,
                   const array_ref<Value, Space>& values, batch_offer& offer) {
  using backend = execution_backend<Exec>;
  using value = std::remove_const_t<Value>;
  using home = std::conditional_t<is_host_exec<Exec>, wire_space<Exec>, device_space>;
  static constexpr const char* label = "ferry::distributed::publish";
  constexpr bool is_shared = Parts == lane_parts::shared || Parts == lane_parts::shared_values;
  constexpr bool has_rows = Parts != lane_parts::values && Parts != lane_parts::shared_values;
  constexpr bool has_values = Parts != lane_parts::lists;
  rank_lanes* const lanes = rank_lanes_of(call);
  if (lanes == nullptr || offer.is_made == 0) return;
  if (!lanes->serve()) {  // a plan was made before they ceased to
    offer = {};
    return;
  }
  const std::int64_t width = values.width();
  const std::int64_t step = has_values ? width * static_cast<std::int64_t>(sizeof(value)) : 0;
  const lane_plan plan = plan_lane(route, call.rank(), is_shared, has_rows, offer.factors != nullptr,
                                   is_shared ? values.rows() : -1, step);
  if (plan.items == 0) return;
  const int device = backend::device_of(exec);
  std::byte* const lane = lanes->reserve(plan.bytes, device, lane_functions_of<Exec>());
  if (lane == nullptr) {
    offer = {};
    return;
  }
  offer.lane = lanes->number();
  offer.lane_place = plan.place;
  offer.lane_rows = plan.rows;
  offer.lane_factors = plan.factors;
  offer.lane_values = plan.values;
  offer.lane_step = step;
  offer.has_all_values = is_shared ? 1 : 0;
  const fence_at_exit<Exec> waits(exec);
  for_items_of_others(route, call.rank(), [&](std::int64_t first, std::int64_t last, std::int64_t begin) {
    constexpr auto item = static_cast<std::int64_t>(sizeof(std::int64_t));
    const auto bytes = static_cast<std::size_t>((last - first) * item);
    if (plan.place >= 0)
      backend::copy_async(exec, label, lane + plan.place + begin * item, offer.place + first, bytes);
    if (plan.rows >= 0)
      backend::copy_async(exec, label, lane + plan.rows + begin * item, offer.rows + first, bytes);
    if (plan.factors >= 0)
      backend::copy_async(exec, label, lane + plan.factors + begin * item, offer.factors + first, bytes);
    if constexpr (has_values && !is_shared) {
      if (step == 0) return;
      const tensor_view<const std::int64_t, home> places(offer.place + first, last - first);
      const tensor_view<value, home> rows(reinterpret_cast<value*>(lane + plan.values + begin * step),
                                          last - first, width);
      gather(exec, values, places, rows, buffer_path<Exec, Space>{}, bounds::unchecked{}).join();
    }
  });
  if constexpr (is_shared)
    if (values.size() != 0) {
      const tensor_view<value, home> rows(reinterpret_cast<value*>(lane + plan.values), values.rows(), width);
      copy(exec, values, rows).join();
    }
  waits.fence();
}

/// The offer of a rank whose batch route_by_kernels has routed, for the owners of its rows. `shard_exec`
/// works on the shard of the rank. `factors`: of the items, null for 1. Blocks.
template <lane_parts Parts, class Exec, class Value, class Space>
[[nodiscard]] batch_offer show_batch(const collective& call, const Exec& exec, const Exec& shard_exec,
                                     const routed_lists& lists, const route_groups& route,
                                     const array_ref<Value, Space>& values, const double* factors = nullptr) {
  batch_offer offer = offer_batch(exec, shard_exec, lists, values);
  offer.factors = factors;
  publish_batch<Parts>(call, exec, route, values, offer);
  return offer;
}
/// As above, of the lists alone.
template <class Exec>
[[nodiscard]] batch_offer show_lists(const collective& call, const Exec& exec, const Exec& shard_exec,
                                     const routed_lists& lists, const route_groups& route) {
  batch_offer offer = offer_lists(exec, shard_exec, lists);
  publish_batch<lane_parts::lists>(call, exec, route, array_ref<const float, device_space>{}, offer);
  return offer;
}

/// Replaces the addresses in the offers of other processes by those of their lanes, where the items of this
/// rank begin.
void localize_offers(const rank_lanes& lanes, int rank, bool on_host, batch_headers& headers);
/// Opens the lanes of all offers. Two phases if one is new. False, on all ranks alike, if an offer is not
/// made or a lane can't be opened.
[[nodiscard]] bool open_lanes(collective& call, rank_lanes& lanes, const lane_functions& functions,
                              const std::vector<batch_offer>& offers);

/// True if each owner can pull its rows of all batches by a kernel; the same on all ranks. Between processes
/// the offers lead to the lanes afterwards. Phases if a lane is new.
template <class Exec>
[[nodiscard]] bool reach_batches(collective& call, batch_headers& headers) {
  rank_lanes* const lanes = rank_lanes_of(call);
  if (lanes == nullptr) return can_pull<Exec>(headers.offers);
  if (!open_lanes(call, *lanes, lane_functions_of<Exec>(), headers.offers)) return false;
  localize_offers(*lanes, call.rank(), is_host_exec<Exec>, headers);
  return true;
}

/// As above, of offers that have been exchanged: if owners can't pull, nobody reads them.
template <class Exec>
[[nodiscard]] bool agree_to_pull(collective& call, batch_headers& headers) {
  const bool pulls = reach_batches<Exec>(call, headers);
  if (!pulls) call.cancel_reads();
  return pulls;
}

}  // namespace ferry::detail
