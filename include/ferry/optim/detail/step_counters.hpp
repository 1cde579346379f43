// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/optim/detail/coefficient_history.hpp>
#include <ferry/optim/field.hpp>
#include <ferry/policy/step_count.hpp>
#include <ferry/rows/detail/global_rows.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
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

/// For the ticket of a step, of one table without heap memory, or of several: their states take the step back
/// before wait() throws. `skips`: a step whose gradients are not finite is counted as skipped and does not
/// throw.
ferry::detail::rollback rollback_of(std::shared_ptr<step_counts> counts, bool skips);
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

/// Errors of the class `owner`, state or records.
/// @{
[[noreturn]] void refuse_moved_contents(const char* owner);
[[noreturn]] void refuse_field_name(const char* owner, std::string_view rule, std::string_view name);
/// @}

/// The names of the fields and the step counters of optim::state and optim::records. The members that count
/// throw invalid_argument if the contents were moved elsewhere.
template <class Rule, MemorySpace Space>
class step_counted {
 public:
  using clock_type = step_counters<Rule, Space>;

  /// Number of the rule's fields with an element per weight, active or not.
  static constexpr int max_fields = detail::fields_of<Rule, field>;
  /// Number of the rule's fields with one element per row.
  static constexpr int row_fields = detail::fields_of<Rule, row_field>;

  /// Number of fields that the rule's options use.
  [[nodiscard]] int fields() const {
    return names_.empty() ? 0 : static_cast<int>(names_.size()) - row_fields;
  }
  /// torch.optim's name of active field i, for i in [0, fields()). Throws std::out_of_range beyond.
  [[nodiscard]] std::string_view field_name(int i) const { return names_[field_index(i)]; }

  /// Number of steps taken. A step whose ticket reports bad indices is taken back.
  [[nodiscard]] std::int64_t steps() const { return clock()->steps; }
  /// For a restored state. Under step_count::catch_up this marks all rows as up to date: call ferry::catch_up
  /// before saving. Throws invalid_argument for a negative count, and for more steps than rows count.
  void set_steps(std::int64_t count) { clock()->set_steps(count); }
  /// Number of steps that nonfinite::skip left out, of those waited for.
  [[nodiscard]] std::int64_t skipped() const { return clock()->skipped; }
  /// Seed of rounding::stochastic.
  [[nodiscard]] std::uint64_t seed() const { return clock()->seed; }
  void set_seed(std::uint64_t seed) { clock()->seed = seed; }
  /// One number per row: its steps under step_count::per_row, the last step applied to it under catch_up.
  /// Empty before the first step under such a policy, unless make_state or make_records was given the policy.
  [[nodiscard]] tensor<std::uint32_t, Space>& row_steps() { return clock()->row_steps; }
  [[nodiscard]] const tensor<std::uint32_t, Space>& row_steps() const { return clock()->row_steps; }

  /// Shared with the tickets of steps in flight.
  [[nodiscard]] const std::shared_ptr<clock_type>& clock() const {
    if (clock_ == nullptr) refuse_moved_contents(owner_);
    return clock_;
  }

 protected:
  /// `owner` is the name of the class, for errors.
  explicit step_counted(const char* owner, int count = row_fields)
      : names_(static_cast<std::size_t>(count)), owner_(owner), clock_(std::make_shared<clock_type>()) {}
  step_counted(const char* owner, const detail::field_list& list) : step_counted(owner, list.count) {
    for (std::size_t f = 0; f < names_.size(); ++f) names_[f] = list.facts[f].name;
  }
  ~step_counted() = default;
  step_counted(step_counted&&) noexcept = default;
  step_counted& operator=(step_counted&&) noexcept = default;

  /// Indices among the active fields and, behind them, the row fields.
  /// @{
  [[nodiscard]] std::size_t field_index(int i) const {
    if (i < 0 || i >= fields()) throw std::out_of_range("ferry::optim: there is no such field");
    return static_cast<std::size_t>(i);
  }
  [[nodiscard]] std::size_t row_field_index(int i) const {
    (void)clock();
    return static_cast<std::size_t>(fields() + i);
  }
  [[nodiscard]] std::size_t field_index(std::string_view name) const {
    for (std::size_t f = 0; f < names_.size(); ++f)
      if (names_[f] == name) return f;
    refuse_field_name(owner_, Rule::name, name);
  }
  /// @}

  std::vector<std::string_view> names_;

 private:
  const char* owner_;
  std::shared_ptr<clock_type> clock_;
};

}  // namespace ferry::optim
