#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/detail/step_counters.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace ferry::optim {

/// What optim::state and optim::records say of time. All of it throws invalid_argument where the contents were moved
/// elsewhere.
template <class Rule, MemorySpace Space>
class step_counted {
 public:
  using clock_type = step_counters<Rule, Space>;

  /// Steps taken; a step whose ticket reported bad indices is taken back.
  [[nodiscard]] std::int64_t steps() const { return clock()->steps; }
  /// For a state that is restored. Under step_count::catch_up all rows are taken for come to this step: save behind
  /// ferry::catch_up.
  void set_steps(std::int64_t count) { clock()->set_steps(count); }
  /// Steps that nonfinite::skip left out, as far as they were waited for.
  [[nodiscard]] std::int64_t skipped() const { return clock()->skipped; }
  /// Of the random bits of rounding::stochastic.
  [[nodiscard]] std::uint64_t seed() const { return clock()->seed; }
  void set_seed(std::uint64_t seed) { clock()->seed = seed; }
  /// One number for each row: its steps under step_count::per_row, under catch_up the step up to which it has come. Empty
  /// before the first step under such a policy, unless make_state or make_records was given it.
  [[nodiscard]] tensor<std::uint32_t, Space>& row_steps() { return clock()->row_steps; }
  [[nodiscard]] const tensor<std::uint32_t, Space>& row_steps() const { return clock()->row_steps; }

  /// Shared with the tickets of steps in flight.
  [[nodiscard]] const std::shared_ptr<clock_type>& clock() const {
    if (clock_ == nullptr)
      throw invalid_argument("ferry::optim::" + std::string(owner_) + ": the contents were moved elsewhere");
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
