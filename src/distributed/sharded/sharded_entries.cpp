// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/sharded_entries.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

namespace {

/// A sharded table, of which the object that was added holds some shards.
class entry_of_sharded_array final : public ranked_entry {
 public:
  /// shards[i]: of rank first_local + i, if it is there.
  entry_of_sharded_array(std::string name, const communicator& comm, std::uint64_t number, std::string kind,
                         std::vector<manifest_fact> facts, std::shared_ptr<const row_spread> spread,
                         std::vector<std::optional<shard_part>>&& shards)
      : ranked_entry(std::move(name), comm, number),
        kind_(std::move(kind)),
        facts_(std::move(facts)),
        spread_(std::move(spread)),
        shards_(std::move(shards)) {}

  [[nodiscard]] std::unique_ptr<checkpoint_entry> acting(bool) const override {
    const auto [first, last] = acting_ranks();
    std::vector<shard_part> parts;
    for (int r = first; r < last; ++r) {
      const auto& shard = shards_[static_cast<std::size_t>(r - comm().group()->first_local())];
      if (!shard) fail_without(r);
      parts.push_back(*shard);
    }
    return std::make_unique<array_entry>(name(), kind_, facts_,
                                         array_of_shards(comm(), spread_, first, std::move(parts)));
  }

 private:
  std::string kind_;
  std::vector<manifest_fact> facts_;
  std::shared_ptr<const row_spread> spread_;
  std::vector<std::optional<shard_part>> shards_;
};

}  // namespace

std::unique_ptr<checkpoint_entry> sharded_array_entry(std::string name, const communicator& comm,
                                                      std::uint64_t number, std::string kind,
                                                      std::vector<manifest_fact> facts,
                                                      std::shared_ptr<const row_spread> spread,
                                                      std::vector<std::optional<shard_part>>&& shards) {
  return std::make_unique<entry_of_sharded_array>(std::move(name), comm, number, std::move(kind),
                                                  std::move(facts), std::move(spread), std::move(shards));
}

}  // namespace ferry::detail
