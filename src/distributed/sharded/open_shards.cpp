// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/open_shards.hpp>
#include <ferry/distributed/sharded/detail/reach_shards.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>

namespace ferry::detail {

namespace {

/// A rank's words about its shard: a handle, or why it has none.
struct shard_offer {
  shared_handle handle;
  short_text<256> trouble;
};

}  // namespace

opened_shards open_shards(collective& call, const communicator& comm,
                          const std::shared_ptr<access_tracker>& accesses, int device,
                          function_ref<shared_handle()> share_own,
                          std::shared_ptr<std::byte> (*open)(const shared_record&, int device)) {
  opened_shards opened;
  shard_offer own_offer;
  opened.device = device;
  comm.group()->wait_before_calls(accesses, false);
  try {
    own_offer.handle = share_own();
  } catch (const std::exception& lost) {
    own_offer.trouble = short_text<256>(lost.what());
  }
  const auto offers = call.all_gather(std::span<const shard_offer>(&own_offer, 1));
  const auto open_all = [&] {
    opened.data.resize(offers.size());
    for (std::size_t r = 0; r < offers.size(); ++r) {
      if (static_cast<int>(r) == call.rank()) continue;
      const shard_offer& offer = offers[r];
      if (offer.trouble.text[0] != '\0') {
        opened.why_not = "rank " + std::to_string(r) + " could not share its own: ";
        opened.why_not += offer.trouble.view();
        return;
      }
      opened.data[r] = open(offer.handle.record(), device);
    }
    opened.reads = std::make_shared<access_tracker>(device);
    comm.group()->wait_before_calls(opened.reads, true);
  };
  try {
    open_all();
  } catch (const std::exception& lost) {
    opened.why_not = lost.what();
    opened.reads.reset();
  }
  const std::int32_t vote = opened.reads != nullptr ? 1 : 0;
  const auto votes = call.all_gather(std::span<const std::int32_t>(&vote, 1));
  opened.by_all = std::find(votes.begin(), votes.end(), 0) == votes.end();
  return opened;
}

std::string why_unopened(const opened_shards& opened, const communicator& comm, int rank, int device) {
  const std::string shard = "this object does not hold that of rank " + std::to_string(rank);
  if (opened.reads != nullptr && opened.device == device) return {};
  if (opened.reads != nullptr)
    return shard + ", and has opened it for device " + std::to_string(opened.device) + ", not for device " +
           std::to_string(device);
  if (!opened.why_not.empty()) return shard + ": " + opened.why_not;
  return shard + (comm.group()->local_count() == comm.size()
                      ? "; make the table outside of communicator::run, by one process"
                      : ", which is in another process; processes reach each other's device memory alone");
}

}  // namespace ferry::detail
