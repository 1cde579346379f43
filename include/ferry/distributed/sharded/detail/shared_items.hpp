// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/launch_tables.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/received_rows.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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
