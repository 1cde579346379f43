// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/row_route.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry::detail {

/// A batch whose route and values the owners of its rows may read: addresses in the memory of the process.
/// Ranks send it to each other as it is. Threads read there; other processes read the lane of the rank, see
/// publish_batch.
struct batch_offer {
  const std::int64_t* place = nullptr;  ///< see routed_lists; null: item k has row k of the values
  const std::int64_t* rows = nullptr;
  const std::byte* values = nullptr;
  const double* factors = nullptr;  ///< of the items of the route; null: 1
  std::int64_t value_step = 0;      ///< bytes from a row of the values to the next
  std::int32_t lists_device = -1;   ///< that has the lists; -1: host memory
  std::int32_t values_device = -1;  ///< that has the values; -1: host memory
  std::int32_t owner_device = -1;   ///< of the instance that works on the shard of the rank
  std::int32_t is_made = 0;         ///< true if kernels may read all this: the work that makes it has ended
  std::int32_t is_share = 0;        ///< true if the lists have the items of one owner alone
  std::int32_t has_all_values = 0;  ///< true if the lane has all rows of the values, not those of the items
  std::uint64_t lane = 0;           ///< number of the memory of the lane; 0: it has nothing
  std::int64_t lane_place = -1;     ///< bytes from the first of the lane to each list; -1: it has none
  std::int64_t lane_rows = -1;
  std::int64_t lane_factors = -1;
  std::int64_t lane_values = -1;
  std::int64_t lane_step = 0;  ///< bytes from a row of the values in the lane to the next
};

/// Headers of the batches of all ranks.
struct batch_headers {
  std::vector<batch_findings> findings;  ///< by rank; one if a thread acts for the group
  std::vector<batch_offer> offers;       ///< by rank
  std::vector<std::int64_t> counts;      ///< [rank * ranks + owner] positions of a rank's batch for an owner
  std::vector<std::int64_t> in_begin;    ///< see routing

  /// Positions of the batch of `rank` for `owner`.
  [[nodiscard]] std::int64_t count(std::size_t rank, int owner) const {
    return counts[rank * offers.size() + static_cast<std::size_t>(owner)];
  }
};

/// The ranks tell each other their findings, the positions for each owner, and an offer: one phase, which
/// also ends reads of the call before. `scanned` has the findings besides those of the route. Others may read
/// what is offered, up to agree() or cancel_reads() of the call.
[[nodiscard]] batch_headers exchange_headers(collective& call, const route_groups& route,
                                             batch_findings scanned, const batch_offer& offer);

/// The headers of a plan, with the findings of the ranks and what they offer for a verb. Others may read it,
/// as above.
[[nodiscard]] batch_headers exchange_offers(collective& call, batch_headers planned,
                                            const batch_findings& batch, const batch_offer& offer);

/// True if each owner can pull its rows of all batches by a kernel; the same on all ranks. `reach` tells
/// whether kernels of a device reach the memory of another one.
[[nodiscard]] bool can_pull(const std::vector<batch_offer>& offers, bool (*reach)(int device, int memory));
/// As above, for the devices of Exec.
template <class Exec>
bool can_pull(const std::vector<batch_offer>& offers) {
  return can_pull(
      offers, [](int device, int memory) { return execution_backend<Exec>::devices_reach(device, memory); });
}

}  // namespace ferry::detail
