// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/concepts/optimizer.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/sharded/detail/sharded_rows.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/optim/state.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The steps of the shards of ranks in [first, last). Throws invalid_argument with the verb, two ranks and
/// their steps if shards count different ones.
std::int64_t equal_steps(std::string_view verb, int first, int last,
                         function_ref<std::int64_t(int)> steps_of);

}  // namespace ferry::detail

namespace ferry {

/// The state of an optimizer for a sharded table: an optim::state for each shard that the table's object
/// holds. Made by optim::make_state(rule, table); move-only. All ranks count the same steps.
template <Optimizer Rule, class T, MemorySpace Space>
class sharded_state {
 public:
  using rule_type = Rule;                           ///< the optimizer rule
  using value_type = T;                             ///< elements of the state
  using memory_space = Space;                       ///< where the tensors lie
  using shard_type = optim::state<Rule, T, Space>;  ///< the state of one shard

  /// For make_state.
  template <class Table>
  sharded_state(const Table& table, std::uint64_t number)
      : comm_(table.comm()),
        number_(number),
        rows_(static_cast<std::int64_t>(table.rows())),
        width_(static_cast<std::int64_t>(table.width())),
        spread_(std::make_shared<const detail::spread_of<typename Table::sharding_type>>(
            table.sharding(), rows_, comm_.size(), detail::digest_of(table.sharding()))),
        shards_(static_cast<std::size_t>(table.comm().group()->local_count())) {
    for (int r = 0; r < comm_.size(); ++r) shard_rows_.push_back(table.rows_of(r));
  }

  /// The state of the shard of a rank, which this object must hold. Throws invalid_argument if it does
  /// not.
  /// @{
  [[nodiscard]] shard_type& shard(int rank) { return held(*this, rank); }
  [[nodiscard]] const shard_type& shard(int rank) const { return held(*this, rank); }
  /// @}

  /// As those of optim::state, for the shards of the ranks that the calling thread acts for. steps() throws
  /// invalid_argument if they count different steps, as verbs then do: a step of some of them failed. load()
  /// or set_steps() make them equal.
  /// @{
  [[nodiscard]] std::int64_t steps() const { return steps_for("sharded_state::steps"); }
  [[nodiscard]] std::int64_t skipped() const { return shard(acting().first).skipped(); }
  [[nodiscard]] std::uint64_t seed() const { return shard(acting().first).seed(); }
  void set_steps(std::int64_t count) {
    const auto [first, last] = acting();
    for (int r = first; r < last; ++r) shard(r).set_steps(count);
  }
  void set_seed(std::uint64_t seed) {
    const auto [first, last] = acting();
    for (int r = first; r < last; ++r) shard(r).set_seed(seed);
  }
  /// @}

  /// Rows of the whole table, number of ranks, rows of the shard of a rank, the rank that the calling thread
  /// acts for, and the device of a rank; for the verbs.
  /// @{
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] int ranks() const { return comm_.size(); }
  [[nodiscard]] std::int64_t rows_of(int rank) const {
    return shard_rows_.at(static_cast<std::size_t>(rank));
  }
  [[nodiscard]] int acting_rank() const { return comm_.acting_rank(); }
  [[nodiscard]] device device_of(int rank) const { return comm_.device(rank); }
  /// @}

  /// steps(), for a verb that errors then name.
  [[nodiscard]] std::int64_t steps_for(std::string_view verb) const {
    const auto [first, last] = acting();
    return detail::equal_steps(verb, first, last, [this](int rank) { return shard(rank).steps(); });
  }
  /// The group of ranks.
  [[nodiscard]] const communicator& comm() const { return comm_; }
  /// Number of the state in its group, the same on all ranks; for the verbs.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// How the rows are spread; for checkpoints.
  [[nodiscard]] const std::shared_ptr<const detail::row_spread>& spread() const { return spread_; }
  /// True if this object holds the state of a rank.
  [[nodiscard]] bool holds(int rank) const {
    const auto place = static_cast<std::size_t>(rank - comm_.group()->first_local());
    return place < shards_.size() && shards_[place].has_value();
  }

  /// Sets the state of a shard, with the rows of the whole table that it has; for make_state.
  void set_shard(int rank, shard_type&& state, const kernels::global_rows& rows) {
    state.clock()->rows = rows;
    shards_.at(static_cast<std::size_t>(rank - comm_.group()->first_local())).emplace(std::move(state));
  }

  /// Throws invalid_argument unless the state was made for this table, or for one like it.
  template <class Table>
  void require_made_for(const char* verb, const Table& table) const {
    if (!(comm_ == table.comm()) || rows_ != static_cast<std::int64_t>(table.rows()) ||
        width_ != static_cast<std::int64_t>(table.width()) ||
        spread_->digest() != detail::digest_of(table.sharding()))
      throw invalid_argument(
          detail::joined("ferry::", verb, ": the state was not made for a table like ", table.describe()));
  }

 private:
  template <class Self>
  static auto& held(Self& self, int rank) {
    const auto place = static_cast<std::size_t>(rank - self.comm_.group()->first_local());
    if (place >= self.shards_.size() || !self.shards_[place].has_value())
      throw invalid_argument(
          detail::joined("ferry::sharded_state: this object does not hold the state of rank ", rank));
    return *self.shards_[place];
  }
  [[nodiscard]] std::pair<int, int> acting() const {
    const int acting_rank = comm_.acting_rank();
    if (acting_rank >= 0) return {acting_rank, acting_rank + 1};
    const int first = comm_.group()->first_local();
    return {first, first + comm_.group()->local_count()};
  }

  communicator comm_;
  std::uint64_t number_;
  std::int64_t rows_;
  std::int64_t width_;
  std::shared_ptr<const detail::row_spread> spread_;
  std::vector<std::int64_t> shard_rows_;
  std::vector<std::optional<shard_type>> shards_;
};

}  // namespace ferry

template <class Rule, class T, class Space>
inline constexpr bool ferry::detail::is_state<ferry::sharded_state<Rule, T, Space>> = true;
