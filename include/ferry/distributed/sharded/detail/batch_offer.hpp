// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace ferry::detail {

/// Where the owners of the rows of a batch find its route and its values: addresses in the memory of the
/// process, so only threads use them. Ranks send it to each other as it is.
struct batch_offer {
  const std::int64_t* place = nullptr;  ///< see routed_lists
  const std::int64_t* rows = nullptr;
  const std::byte* values = nullptr;
  std::int64_t value_step = 0;      ///< bytes from a row of the values to the next
  std::int32_t lists_device = -1;   ///< that has the lists; -1: host memory
  std::int32_t values_device = -1;  ///< that has the values; -1: host memory
  std::int32_t owner_device = -1;   ///< of the instance that works on the shard of the rank
  std::int32_t is_made = 0;         ///< whether kernels may read all this: the work that makes it has ended
};

/// The offer of a rank whose batch route_by_kernels has routed. `there` works on the shard of the rank.
template <class Exec, class Value, class Space>
batch_offer offer_batch(const Exec& exec, const Exec& there, const routed_lists& lists,
                        const array_ref<Value, Space>& values) {
  using backend = execution_backend<Exec>;
  batch_offer made;
  if (lists.memory == nullptr || (std::is_same_v<Space, pageable_space> && !is_host_exec<Exec>)) return made;
  made.place = lists.place;
  made.rows = lists.rows;
  made.values = reinterpret_cast<const std::byte*>(values.data);
  made.value_step = values.row_stride() * static_cast<std::int64_t>(sizeof(Value));
  made.lists_device = backend::device_of(exec);
  if constexpr (!Space::is_host_accessible) made.values_device = backend::device_of(exec);
  made.owner_device = backend::device_of(there);
  made.is_made = 1;
  return made;
}

/// Whether each owner can pull its rows of all batches by a kernel; the same on all ranks. `reach` tells
/// whether kernels of a device reach the memory of another one.
[[nodiscard]] bool can_pull(const std::vector<batch_offer>& offers, bool (*reach)(int device, int memory));

/// As above, for the devices of Exec.
template <class Exec>
bool can_pull(const std::vector<batch_offer>& offers) {
  return can_pull(
      offers, [](int device, int memory) { return execution_backend<Exec>::devices_reach(device, memory); });
}

}  // namespace ferry::detail
