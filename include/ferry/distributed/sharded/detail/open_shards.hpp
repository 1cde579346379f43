// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/shared/detail/shared_segment.hpp>
#include <ferry/distributed/shared/share.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace ferry::detail {

/// The shards of a table that lie in other processes of the machine, as a device of this one reads them.
struct opened_shards {
  std::vector<std::shared_ptr<std::byte>> data;  ///< by rank; null for the own one and those without rows
  std::shared_ptr<access_tracker> reads;         ///< of all of them in flight; null if none were opened
  int device = -1;                               ///< which reads them
  bool by_all = false;                           ///< true if all ranks have opened those of all others
  std::string why_not;                           ///< could they not be opened
};

/// True if the ranks are processes of one rank each, whose shards others can open.
template <class Space, class Spread>
bool opens_shards(const communicator& comm) {
  if constexpr (shares_memory<Space>() && !Spread::replicates)
    return comm.group()->local_count() == 1 && comm.size() > 1;
  else
    return false;
}

/// Tells the other ranks of this one's shard, which `share_own` shares, and opens theirs for a device by
/// `open`. Two phases of the call. If a rank can't share or open, its table serves all the same: kernels that
/// read the shards of all ranks alone need them, and path::peer says why it has none.
opened_shards open_shards(collective& call, const communicator& comm,
                          const std::shared_ptr<access_tracker>& accesses, int device,
                          function_ref<shared_handle()> share_own,
                          std::shared_ptr<std::byte> (*open)(const shared_record&, int device));

/// As above, of a shard.
template <class T, class Space>
opened_shards open_shards(collective& call, const communicator& comm, const tensor<T, Space>& shard) {
  return open_shards(
      call, comm, shard.accesses(), shard.device().id, [&shard] { return share(shard); },
      &opened_memory<Space>);
}

}  // namespace ferry::detail
