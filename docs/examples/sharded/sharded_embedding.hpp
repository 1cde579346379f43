// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../skipgram/rank_group.hpp"

#include <ferry/distributed/communicator/communicator.hpp>

#include <string>

namespace skipgram {

/// The ranks of a communicator. The rows of their tables are spread over them. Memory space, path and element
/// type of a table are those that options.hpp has by default: others are refused with std::invalid_argument.
class communicator_group final : public rank_group {
 public:
  explicit communicator_group(const ferry::communicator& comm) : comm_(comm) {}

  [[nodiscard]] int rank() const override { return comm_.rank(); }
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> part_of(std::int64_t items) const override;
  void sum(const execution& exec, std::vector<std::int64_t>& numbers) const override;
  [[nodiscard]] std::unique_ptr<embedding> make_embedding(const execution& exec,
                                                          const embedding_spec& spec) const override;

 private:
  const ferry::communicator& comm_;
};

/// Throws std::invalid_argument for a table that is not compiled over ranks.
void require_sharded(const std::string& space, const std::string& path, const std::string& dtype);

}  // namespace skipgram
