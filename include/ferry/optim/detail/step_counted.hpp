// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/optim/detail/step_counters.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

namespace ferry::optim {

/// Errors of the class `owner`, state or records.
/// @{
[[noreturn]] void refuse_moved_contents(const char* owner);
[[noreturn]] void refuse_field_name(const char* owner, std::string_view rule, std::string_view name);
/// @}

/// The step counters of optim::state and optim::records. All members throw invalid_argument if the contents
/// were moved elsewhere.
template <class Rule, MemorySpace Space>
class step_counted {
 public:
  using clock_type = step_counters<Rule, Space>;

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
  explicit step_counted(const char* owner) : owner_(owner), clock_(std::make_shared<clock_type>()) {}
  ~step_counted() = default;
  step_counted(step_counted&&) noexcept = default;
  step_counted& operator=(step_counted&&) noexcept = default;

 private:
  const char* owner_;
  std::shared_ptr<clock_type> clock_;
};

}  // namespace ferry::optim
