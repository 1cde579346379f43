// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/optim/detail/coefficient_history.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/rows/detail/global_rows.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::optim {

/// The largest number of steps that a row counts: its counter has 32 bits.
inline constexpr std::int64_t most_row_steps = std::numeric_limits<std::uint32_t>::max();

/// The counts of a state's steps, without its types.
struct step_counts {
  std::int64_t steps = 0;
  std::int64_t skipped = 0;
  std::uint64_t seed = 0;
  kernels::global_rows rows{};  ///< of the part of a table that the state is for
  /// The step_count policy of the rows that count; empty if rows do not count.
  std::string_view row_policy;

  void require_policy(const char* verb, std::string_view policy,
                      const ferry::detail::array_label& table) const;
  /// Refuses a next step that rows can't count.
  void require_countable(const char* verb, std::string_view policy,
                         const ferry::detail::array_label& table) const;
  /// Refuses a number of steps that the state can't have taken.
  void require_steps(std::int64_t count) const;
};

/// For the ticket of a step: takes the step back before wait() throws. `skips`: a step whose gradients are
/// not finite is counted as skipped and does not throw.
ferry::detail::rollback rollback_of(std::shared_ptr<step_counts> counts, bool skips);
/// The rollback of a step of several tables: all of their states take it back.
ferry::detail::rollback rollback_of(std::vector<std::shared_ptr<step_counts>> counts, bool skips);

/// A state's step counters: the steps taken, the steps of each row if rows count, and the coefficient history
/// for rows that missed steps. Shared by the state and by the tickets of steps in flight.
template <class Rule, MemorySpace Space>
struct step_counters : step_counts {
  /// Empty if rows do not count; else one number per row: its steps, or the last step applied to it.
  tensor<std::uint32_t, Space> row_steps;
  coefficient_history<Rule> updates;

  /// Takes the counters of a policy. All rows are up to date with the state.
  void count_rows(std::string_view policy, tensor<std::uint32_t, Space>&& counters) {
    row_steps = std::move(counters);
    row_policy = policy;
    updates.begin_at(steps + 1);
  }

  /// For a restored state: rows that catch up are marked as up to date, others keep their counts.
  void set_steps(std::int64_t count) {
    require_steps(count);
    steps = count;
    updates.begin_at(count + 1);
    if (row_policy != step_count::catch_up::name) return;
    row_steps = {};
    row_policy = {};
  }
};

}  // namespace ferry::optim
