// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "embedding.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace skipgram {

/// Trainers that train the same tables together, seen from one of them. ../sharded implements it by a
/// communicator of ferry's.
class rank_group {
 public:
  virtual ~rank_group() = default;

  [[nodiscard]] virtual int rank() const = 0;
  /// The first of this rank's part of so many items, and the item after its last.
  [[nodiscard]] virtual std::pair<std::int64_t, std::int64_t> part_of(std::int64_t items) const = 0;
  /// Replaces the numbers by their sums over all ranks.
  virtual void sum(const execution& exec, std::vector<std::int64_t>& numbers) const = 0;
  /// A table whose rows the ranks share. All ranks make the same calls.
  [[nodiscard]] virtual std::unique_ptr<embedding> make_embedding(const execution& exec,
                                                                  const embedding_spec& spec) const = 0;
};

}  // namespace skipgram
