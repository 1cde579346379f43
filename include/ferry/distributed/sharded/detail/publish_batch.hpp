// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/launch_tables.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/received_rows.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/shared/detail/rank_lanes.hpp>
#include <ferry/distributed/shared/detail/shared_segment.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Batches that owners read in place: threads where the batches are, other processes of the machine in memory
/// that the rank shows, its lane. There are the rows of the items, and the values, packed in the order of the
/// items, so that all reads over the link follow each other, and each value crosses once. The rank's own
/// items stay where they are.
namespace ferry::detail {

/// True if kernels of Exec reach memory that ranks share: not those of a host in a program with devices.
template <class Exec>
inline constexpr bool reaches_shared_memory = !is_host_exec<Exec> || device_is_host<Exec>;

/// The functions for lanes that kernels of Exec read.
template <class Exec>
lane_functions lane_functions_of() {
  if constexpr (!is_host_exec<Exec> && shares_memory<device_space>())
    return {&make_device_lane<device_space>, &open_device_lane<device_space>};
  else
    return {&make_host_lane, &open_host_lane};
}

/// True if owners may read batches in place: where they are between threads, in lanes between processes.
[[nodiscard]] bool shows_batches(const collective& call);

/// The content of a lane.
struct lane_content {
  bool rows = true;  ///< the owners do not know the rows of the items
  bool shared =
      false;  ///< several items have one value: the lane has all values, and the place of each item's
};
/// The parts of a lane, in bytes from its first.
struct lane_plan {
  std::int64_t items = 0;  ///< of the other ranks
  std::int64_t place = -1, rows = -1, factors = -1, values = -1;
  std::size_t bytes = 0;
};
/// The parts of a lane of that content. The values have `value_rows` rows of `step` bytes.
[[nodiscard]] lane_plan plan_lane(const item_groups& items, int rank, lane_content content, bool has_factors,
                                  std::int64_t value_rows, std::int64_t step);

/// The values of a batch for the owners of its rows.
template <class T, class Space>
struct batch_values {
  using element = T;
  array_ref<const T, Space> rows{};
  const std::int64_t* row_of_item = nullptr;  ///< local_list the instance
  const double* factors = nullptr;            ///< of the items, local_list the instance; null: 1
  bool is_shared = false;                     ///< several items have one row

  /// The number of each item's value.
  [[nodiscard]] const std::int64_t* keys() const { return row_of_item; }
  /// sink = the rows of a list. Blocks.
  template <class Exec, class Sink>
  void pack(const Exec& exec, const std::int64_t* list, std::int64_t count, Sink& sink) const {
    if (count == 0 || rows.width() == 0) return;
    gather(exec, rows, list_view<Exec>(list, count), sink, buffer_path<Exec, Space>{}, bounds::unchecked{})
        .join();
  }
};

/// Puts the batch of an offer into the lane of its rank, if the ranks are processes. Blocks. Without memory
/// for it the offer is not made, and the batch travels packed.
template <class Exec, class T, class Space>
void publish_batch(const collective& call, const Exec& exec, const item_groups& items,
                   const batch_values<T, Space>& values, lane_content content, batch_offer& offer) {
  using backend = execution_backend<Exec>;
  using home = near_space<Exec>;
  static constexpr const char* label = "ferry::distributed::publish";
  rank_lanes* const lanes = rank_lanes_of(call);
  if (lanes == nullptr || offer.is_made == 0) return;
  if (!lanes->serve()) {  // a plan was made before they ceased to
    offer = {};
    return;
  }
  const std::int64_t width = values.rows.width();
  const std::int64_t step = offer.values == nullptr ? 0 : width * static_cast<std::int64_t>(sizeof(T));
  const lane_plan plan =
      plan_lane(items, call.rank(), content, offer.factors != nullptr, values.rows.rows(), step);
  if (plan.items == 0) return;
  std::byte* const lane = lanes->reserve(plan.bytes, backend::device_of(exec), lane_functions_of<Exec>());
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
  offer.has_all_values = content.shared ? 1 : 0;
  const fence_at_exit<Exec> waits(exec);
  const auto [own_first, own_last] = items.group(call.rank());
  const auto put = [&](std::int64_t first, std::int64_t last, std::int64_t begin) {
    if (first == last) return;
    const auto copy_list = [&](std::int64_t part, const auto* list) {
      constexpr auto bytes = static_cast<std::int64_t>(sizeof *list);
      if (part >= 0)
        backend::copy_async(exec, label, lane + part + begin * bytes, list + first,
                            static_cast<std::size_t>((last - first) * bytes));
    };
    copy_list(plan.place, offer.place);
    copy_list(plan.rows, offer.rows);
    copy_list(plan.factors, offer.factors);
    if (content.shared || step == 0) return;
    tensor_view<T, home> rows(reinterpret_cast<T*>(lane + plan.values + begin * step), last - first, width);
    values.pack(exec, offer.place + first, last - first, rows);
  };
  put(0, own_first, 0);
  put(own_last, items.items(), own_first);
  if (content.shared && step != 0 && values.rows.size() != 0) {
    const tensor_view<T, home> rows(reinterpret_cast<T*>(lane + plan.values), values.rows.rows(), width);
    copy(exec, values.rows, rows).join();
  }
  waits.fence();
}

/// The offer of a rank whose batch lies in buckets, for the owners of its rows; not made if kernels of other
/// ranks can't read it. `values` without rows: the lists alone. `shard_exec` works on the shard of the rank.
/// Blocks.
template <class Exec, class T, class Space>
[[nodiscard]] batch_offer show_batch(const collective& call, const Exec& exec, const Exec& shard_exec,
                                     const buckets& items, const batch_values<T, Space>& values,
                                     lane_content content) {
  using backend = execution_backend<Exec>;
  batch_offer offer;
  if constexpr (reaches_shared_memory<Exec> &&
                (is_host_exec<Exec> || !std::is_same_v<Space, pageable_space>)) {
    if (!shows_batches(call) || (items.everywhere && !call.shares_addresses())) return offer;
    offer.place = values.row_of_item;
    offer.rows = items.rows;
    offer.factors = values.factors;
    offer.values = reinterpret_cast<const std::byte*>(values.rows.data);
    offer.value_step = values.rows.row_stride() * static_cast<std::int64_t>(sizeof(T));
    offer.lists_device = backend::device_of(exec);
    offer.owner_device = backend::device_of(shard_exec);
    if constexpr (!Space::is_host_accessible) offer.values_device = backend::device_of(exec);
    offer.own_items = items.group(call.rank()).second - items.group(call.rank()).first;
    offer.is_made = 1;
    offer.is_share = items.everywhere ? 1 : 0;
    publish_batch(call, exec, items, values, content, offer);
  }
  return offer;
}

/// Replaces the addresses in the offers of other processes by those of their lanes, where the items of this
/// rank begin.
void localize_offers(const rank_lanes& lanes, int rank, bool on_host, batch_headers& headers);

/// Opens the lanes of all offers. Two phases if one is new. False, on all ranks alike, if an offer is not
/// made or a lane can't be opened.
[[nodiscard]] bool open_lanes(collective& call, rank_lanes& lanes, const lane_functions& functions,
                              const std::vector<batch_offer>& offers);

/// True if kernels of each owner read its items of all batches in place; the same on all ranks. A device
/// reads values of other memory with few threads, so these travel packed. Between processes the offers lead
/// to the lanes afterwards. Phases if a lane is new. If owners can't, nobody reads what is offered.
template <class Exec>
[[nodiscard]] bool agree_to_pull(collective& call, batch_headers& headers) {
  if (call.is_whole()) return false;
  const auto is_far = [](const batch_offer& offer) {
    return offer.values != nullptr && offer.values_device < 0;
  };
  rank_lanes* const lanes = rank_lanes_of(call);
  bool pulls = is_host_exec<Exec> || std::none_of(headers.offers.begin(), headers.offers.end(), is_far);
  if (lanes == nullptr)
    pulls = pulls && can_pull<Exec>(headers.offers);
  else if (pulls && open_lanes(call, *lanes, lane_functions_of<Exec>(), headers.offers))
    localize_offers(*lanes, call.rank(), is_host_exec<Exec>, headers);
  else
    pulls = false;
  if (!pulls) call.cancel_reads();
  return pulls;
}

}  // namespace ferry::detail

/// Values that several items of an owner share, as those of a bag do: they leave once.
namespace ferry::kernels {

/// marks[k] = 1 if item k is the first of its owner with its value, else 0.
struct mark_values {
  const std::int64_t* keys;  ///< number of the value of each item
  const std::int64_t* begin;
  int groups;
  std::uint32_t* marks;
  static std::int64_t bytes_each() { return 3 * sizeof(std::int64_t); }
  KOKKOS_FUNCTION void operator()(std::int64_t k) const {
    marks[k] = begin[group_of_item(begin, groups, k)] == k || keys[k] != keys[k - 1] ? 1 : 0;
  }
};

/// numbers[k] = the number of the item's value among those that leave, list[number] = its key.
struct number_values {
  const std::int64_t* keys;
  const std::uint64_t* sums;  ///< of the marks up to each item
  std::int64_t* numbers;
  std::int64_t* list;
  static std::int64_t bytes_each() { return 4 * sizeof(std::int64_t); }
  KOKKOS_FUNCTION void operator()(std::int64_t k) const {
    const auto number = static_cast<std::int64_t>(sums[k]) - 1;
    numbers[k] = number;
    list[number] = keys[k];
  }
};

/// ends[r] = the values of the groups up to that of rank r.
struct end_values {
  const std::int64_t* begin;
  const std::uint64_t* sums;
  std::int64_t* ends;
  KOKKOS_FUNCTION void operator()(std::int64_t r) const {
    ends[r] = begin[r + 1] == 0 ? 0 : static_cast<std::int64_t>(sums[begin[r + 1] - 1]);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The values that items share, each once for an owner.
template <class Exec>
struct shared_items {
  tensor<std::int64_t, near_space<Exec>> numbers;  ///< of each item's value within the group of its owner
  tensor<std::int64_t, near_space<Exec>> list;     ///< the key of each value
  item_groups groups;
};

/// Finds them: `keys` has the value of each item. Neighbours of an owner that have one value share it. Waits.
template <class Exec>
shared_items<Exec> share_items(const char* verb, const Exec& exec, const buckets& items,
                               const std::int64_t* keys) {
  using backend = execution_backend<Exec>;
  const std::int64_t count = items.items();
  const auto groups = static_cast<int>(items.begin.size()) - 1;
  shared_items<Exec> shared{payload<std::int64_t, near_space<Exec>>(exec, "numbers of values", count),
                            payload<std::int64_t, near_space<Exec>>(exec, "values of items", count),
                            {}};
  shared.groups.everywhere = items.everywhere;
  shared.groups.begin.assign(items.begin.size(), 0);
  if (count == 0) return shared;
  launch_context<Exec> call(exec, verb);
  const std::string& label = call.label("bags", "share");
  const std::int64_t* const begin = records_for_kernels(call, std::vector<std::int64_t>(items.begin));
  auto* const marks = call.template scratch<std::uint32_t>(count);
  auto* const sums = call.template scratch<std::uint64_t>(count);
  auto* const ends = call.template pinned<std::int64_t>(groups);
  const std::size_t bytes = backend::template sum_bytes<const std::uint32_t*>(count);
  auto* const workspace = call.template scratch<std::byte>(static_cast<std::int64_t>(bytes));
  launch(exec, label, count, kernels::mark_values{keys, begin, groups, marks});
  backend::inclusive_sum(exec, static_cast<const std::uint32_t*>(marks), sums, count, workspace, bytes);
  launch(exec, label, count, kernels::number_values{keys, sums, shared.numbers.data(), shared.list.data()});
  launch(exec, label, groups, kernels::end_values{begin, sums, ends});
  backend::fence(exec, label);
  std::copy_n(ends, groups, shared.groups.begin.begin() + 1);
  std::vector<std::int64_t> shift(shared.groups.begin.begin(), shared.groups.begin.end() - 1);
  for (std::int64_t& first : shift) first = -first;
  shift_groups(call, shared.numbers.data(), count, items.begin, std::move(shift));
  backend::fence(exec, label);
  call.finish().drop();
  return shared;
}

}  // namespace ferry::detail
