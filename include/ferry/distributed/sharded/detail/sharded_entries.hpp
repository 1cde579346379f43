// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/sharded/detail/sharded_rows.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/state_entry.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// A sharded table, of which the object that was added holds some shards. shards[i]: of rank first_local + i,
/// if it is there.
[[nodiscard]] std::unique_ptr<checkpoint_entry> sharded_array_entry(
    std::string name, const communicator& comm, std::uint64_t number, std::string kind,
    std::vector<manifest_fact> facts, std::shared_ptr<const row_spread> spread,
    std::vector<std::optional<shard_part>>&& shards);

/// A state with the shards of some ranks: one, or all.
template <class Optimizer, class Space>
class state_of_ranks final : public state_entry<Optimizer, Space> {
 public:
  using base = state_entry<Optimizer, Space>;
  using clock_type = typename base::clock_type;

  /// The counters of a shard.
  struct clock_of_shard {
    std::shared_ptr<clock_type> clock;
    std::int64_t rows;
  };

  state_of_ranks(const ranked_entry& entry, std::shared_ptr<Optimizer> optimizer,
                 std::vector<checkpoint_array> fields, std::shared_ptr<const row_spread> spread, int first,
                 std::vector<clock_of_shard>&& clocks, bool leads)
      : base(entry.name(), std::move(optimizer), std::move(fields), clocks.at(0).clock),
        comm_(entry.comm()),
        spread_(std::move(spread)),
        first_(first),
        clocks_(std::move(clocks)),
        leads_(leads) {}

  void prepare(const load_source& source, const manifest_entry& stored,
               std::vector<load_step>& steps) override {
    const manifest_array* const counters = stored.array("row_steps");
    if (counters != nullptr && counters->extents.size() == 1 &&
        counters->extents[0] != static_cast<std::uint64_t>(spread_->rows()))
      source.fail(this->name(), joined("the file has counters of ", counters->extents[0],
                                       " rows, and the state here has ", spread_->rows(), " rows"));
    for (const auto& clock : clocks_)
      if (const auto& accesses = clock.clock->row_steps.accesses(); accesses != nullptr)
        accesses->wait_for_all();
    counters_.clear();
    counters_.resize(clocks_.size());
    base::prepare(source, stored, steps);
    recordings_.assign(clocks_.size() - 1, this->next_.recorded);
  }
  void commit() noexcept override {
    for (std::size_t i = 1; i < clocks_.size(); ++i) {
      clock_type& clock = *clocks_[i].clock;
      clock.steps = this->next_.steps;
      clock.skipped = this->next_.skipped;
      clock.seed = this->next_.seed;
      clock.row_steps = std::move(counters_[i]);
      clock.row_policy = this->next_.row_policy;
      clock.updates.restore(std::move(recordings_[i - 1]));
    }
    this->next_.row_steps = std::move(counters_[0]);
    if (!leads_) this->next_.optimizer = nullptr;  // another rank sets the optimizer that they share
    base::commit();
  }

 protected:
  [[nodiscard]] state_counts counts() const override {
    equal_steps(joined("io::checkpoint: '", this->name(), "'"), first_,
                first_ + static_cast<int>(clocks_.size()),
                [this](int rank) { return clocks_[static_cast<std::size_t>(rank - first_)].clock->steps; });
    return base::counts();
  }
  [[nodiscard]] checkpoint_array saved_counters() const override {
    std::vector<shard_part> parts;
    for (const auto& clock : clocks_) parts.push_back(part(clock.clock->row_steps));
    return array_of_shards(comm_, spread_, first_, std::move(parts));
  }
  checkpoint_array loaded_counters(std::size_t) override {
    std::vector<shard_part> parts;
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
      counters_[i] = tensor<std::uint32_t, Space>(
          this->name() + "::row_steps", comm_.device(first_ + static_cast<int>(i)), clocks_[i].rows);
      parts.push_back(part(counters_[i]));
    }
    return array_of_shards(comm_, spread_, first_, std::move(parts));
  }
  /// Every rank checks some.
  [[nodiscard]] std::pair<std::size_t, std::size_t> share_of_counters() const override {
    if (comm_.acting_rank() < 0) return {0, 1};
    return {static_cast<std::size_t>(first_), static_cast<std::size_t>(comm_.size())};
  }

 private:
  [[nodiscard]] shard_part part(tensor<std::uint32_t, Space>& counters) const {
    return part_of_shard<Space>(as_stored("row_steps", make_ref(counters), this->name()));
  }

  communicator comm_;
  std::shared_ptr<const row_spread> spread_;
  int first_;
  std::vector<clock_of_shard> clocks_;
  bool leads_;
  std::vector<tensor<std::uint32_t, Space>> counters_;              ///< of each shard, for commit()
  std::vector<recording_of<typename base::rule_type>> recordings_;  ///< of the shards after the first
};

/// An optimizer with a sharded state.
template <class Optimizer, class Space>
class sharded_state_entry final : public ranked_entry {
 public:
  using acting_type = state_of_ranks<Optimizer, Space>;
  /// The fields of a shard, and its counters.
  struct shard_type {
    std::vector<shard_part> fields;
    typename acting_type::clock_of_shard clock;
  };

  sharded_state_entry(std::string name, const communicator& comm, std::uint64_t number,
                      std::shared_ptr<Optimizer> optimizer, std::shared_ptr<const row_spread> spread,
                      std::vector<std::optional<shard_type>>&& shards)
      : ranked_entry(std::move(name), comm, number),
        optimizer_(std::move(optimizer)),
        spread_(std::move(spread)),
        shards_(std::move(shards)) {}

  [[nodiscard]] std::unique_ptr<checkpoint_entry> acting(bool leads) const override {
    const auto [first, last] = acting_ranks();
    std::vector<typename acting_type::clock_of_shard> clocks;
    std::vector<std::vector<shard_part>> parts;  // of each field
    for (int r = first; r < last; ++r) {
      const auto& shard = shards_[static_cast<std::size_t>(r - comm().group()->first_local())];
      if (!shard) fail_without(r);
      clocks.push_back(shard->clock);
      parts.resize(shard->fields.size());
      for (std::size_t f = 0; f < parts.size(); ++f) parts[f].push_back(shard->fields[f]);
    }
    std::vector<checkpoint_array> fields;
    fields.reserve(parts.size());
    for (auto& shards : parts) fields.push_back(array_of_shards(comm(), spread_, first, std::move(shards)));
    return std::make_unique<acting_type>(*this, optimizer_, std::move(fields), spread_, first,
                                         std::move(clocks), leads);
  }

 private:
  std::shared_ptr<Optimizer> optimizer_;
  std::shared_ptr<const row_spread> spread_;
  std::vector<std::optional<shard_type>> shards_;
};

}  // namespace ferry::detail
