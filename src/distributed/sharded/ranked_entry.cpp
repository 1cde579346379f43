// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/ranked_entry.hpp>

#include "sharded_rows.hpp"

#include <ferry/error.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

void ranked_entry::describe(manifest_entry& entry, std::vector<checkpoint_array>& arrays) const {
  const std::size_t first = arrays.size();
  acting(true)->describe(entry, arrays);
  for (std::size_t i = first; i < arrays.size(); ++i)
    if (const auto* rows = rows_of_shards(arrays[i])) rows->wait_for_writes();
}

void ranked_entry::prepare(const load_source& source, const manifest_entry& stored,
                           std::vector<load_step>& steps) {
  const std::size_t first = steps.size();
  now_ = acting(true);
  now_->prepare(source, stored, steps);
  for (std::size_t i = first; i < steps.size(); ++i)
    if (const auto* rows = rows_of_shards(steps[i].target)) rows->wait_for_all();
}

void ranked_entry::commit() noexcept {
  now_->commit();
  now_ = nullptr;
}

std::pair<int, int> ranked_entry::acting_ranks() const {
  const int rank = comm().acting_rank();
  if (rank >= 0) return {rank, rank + 1};
  const int first = comm().group()->first_local();
  return {first, first + comm().group()->local_count()};
}

void ranked_entry::fail_without(int rank) const {
  throw invalid_argument("ferry::io::checkpoint: '" + name() +
                         "': the object that was added does not hold the shard of rank " +
                         std::to_string(rank));
}

}  // namespace ferry::detail
