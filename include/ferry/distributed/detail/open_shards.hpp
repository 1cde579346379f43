// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator.hpp>
#include <ferry/distributed/detail/borrowed_memory.hpp>
#include <ferry/distributed/detail/collective.hpp>
#include <ferry/distributed/detail/shared_record.hpp>
#include <ferry/distributed/open_shared.hpp>
#include <ferry/distributed/share.hpp>
#include <ferry/distributed/shared_handle.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ferry::detail {

/// The shards of a table that lie in other processes of the machine, as a device of this one reads them.
struct opened_shards {
  std::vector<std::shared_ptr<std::byte>> data;  ///< by rank; null for the own one and those without rows
  std::shared_ptr<access_tracker> reads;         ///< of all of them in flight; null where none were opened
  int device = -1;                               ///< which reads them
  std::string why_not;                           ///< could they not be opened
};

/// What a rank tells of its shard: a handle, or why it has none.
struct shard_offer {
  shared_handle handle;
  short_text<256> trouble;
};

/// Whether the ranks are processes of one rank each, whose shards others can open.
template <class Space, class Spread>
bool opens_shards(const communicator& comm) {
  if constexpr (shares_memory<Space>() && !Spread::replicates)
    return comm.group()->local_count() == 1 && comm.size() > 1;
  else
    return false;
}

/// Tells the other ranks of this one's shard, and opens theirs. A phase of the call. Where a rank can't share
/// or open, its table serves all the same: path::peer alone needs the shards, and says why it has none.
template <class T, class Space>
opened_shards open_shards(collective& call, const communicator& comm, const tensor<T, Space>& own) {
  opened_shards made;
  shard_offer mine;
  made.device = own.device().id;
  comm.group()->wait_before_calls(own.accesses(), false);
  try {
    mine.handle = share(own);
  } catch (const std::exception& lost) {
    mine.trouble = short_text<256>(lost.what());
  }
  const auto all = call.all_gather(std::span<const shard_offer>(&mine, 1));
  try {
    made.data.resize(all.size());
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (static_cast<int>(r) == call.rank()) continue;
      const shard_offer& its = all[r];
      if (its.trouble.text[0] != '\0') {
        made.why_not = "rank " + std::to_string(r) + " could not share its own: ";
        made.why_not += its.trouble.view();
        return made;
      }
      made.data[r] = opened_memory<Space>(its.handle.record(), made.device);
    }
    made.reads = std::make_shared<access_tracker>(made.device);
    comm.group()->wait_before_calls(made.reads, true);
  } catch (const std::exception& lost) {
    made.why_not = lost.what();
    made.reads.reset();
  }
  return made;
}

}  // namespace ferry::detail
