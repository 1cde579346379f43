// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/launch_tables.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/received_rows.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

/// Batches that the owners of their rows, threads of one process, read where they are.
namespace ferry::detail {

/// True if kernels of Exec reach memory that ranks share: not those of a host in a program with devices.
template <class Exec>
inline constexpr bool reaches_shared_memory = !is_host_exec<Exec> || device_is_host<Exec>;

/// The values of a batch for the owners of its rows.
template <class T, class Space>
struct batch_values {
  using element = T;
  array_ref<const T, Space> rows{};
  const std::int64_t* row_of_item = nullptr;  ///< near the instance
  const double* factors = nullptr;            ///< of the items, near the instance; null: 1
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

/// The offer of a rank whose batch lies in buckets, for the owners of its rows; not made if kernels of other
/// ranks can't read it. `values` without rows: the lists alone. `shard_exec` works on the shard of the rank.
template <class Exec, class T, class Space>
[[nodiscard]] batch_offer show_batch(const collective& call, const Exec& exec, const Exec& shard_exec,
                                     const buckets& items, const batch_values<T, Space>& values) {
  using backend = execution_backend<Exec>;
  batch_offer offer;
  if constexpr (reaches_shared_memory<Exec> &&
                (is_host_exec<Exec> || !std::is_same_v<Space, pageable_space>)) {
    if (call.is_whole() || !call.shares_addresses()) return offer;
    offer.place = values.row_of_item;
    offer.rows = items.rows;
    offer.factors = values.factors;
    offer.values = reinterpret_cast<const std::byte*>(values.rows.data);
    offer.value_step = values.rows.row_stride() * static_cast<std::int64_t>(sizeof(T));
    offer.lists_device = backend::device_of(exec);
    offer.owner_device = backend::device_of(shard_exec);
    if constexpr (!Space::is_host_accessible) offer.values_device = backend::device_of(exec);
    offer.is_made = 1;
    offer.is_share = items.everywhere ? 1 : 0;
  }
  return offer;
}

/// True if kernels of each owner read its items of all batches in place; the same on all ranks. A device
/// reads values of other memory with few threads, so these travel packed. If owners can't, nobody reads what
/// is offered.
template <class Exec>
[[nodiscard]] bool agree_to_pull(collective& call, const batch_headers& headers) {
  if (call.is_whole()) return false;
  const auto is_far = [](const batch_offer& offer) {
    return offer.values != nullptr && offer.values_device < 0;
  };
  const bool pulls =
      (is_host_exec<Exec> || std::none_of(headers.offers.begin(), headers.offers.end(), is_far)) &&
      can_pull(headers.offers,
               [](int device, int memory) { return execution_backend<Exec>::devices_reach(device, memory); });
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
