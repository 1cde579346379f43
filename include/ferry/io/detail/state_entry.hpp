// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/optimizer_facts.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/field.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <boost/hana/for_each.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The numbers of a state.
struct state_counts {
  std::int64_t steps = 0;
  std::int64_t skipped = 0;
  std::uint64_t seed = 0;
  std::string_view row_policy;
};

/// The recorded steps of step_count::catch_up, see history_numbers.
struct recorded_steps {
  std::int64_t first = 0;
  bool in_double = false;
  std::vector<std::uint64_t> numbers;
};

/// An optimizer with its state: the rule and its options, the fields, the step counters, the seed, and the
/// recorded steps. state_entry knows their types.
class stored_state : public checkpoint_entry {
 public:
  void describe(manifest_entry& description, std::vector<checkpoint_array>& arrays) const override;
  void prepare(const load_source& source, const manifest_entry& stored,
               std::vector<load_step>& steps) override;

 protected:
  /// `is_const`: the options of the optimizer are compared on load instead of set.
  stored_state(std::string name, const std::vector<checkpoint_array>& fields, bool is_const);

  /// The present state.
  /// @{
  [[nodiscard]] virtual std::vector<manifest_fact> optimizer() const = 0;
  [[nodiscard]] virtual state_counts counts() const = 0;
  [[nodiscard]] virtual recorded_steps recorded() const = 0;
  [[nodiscard]] virtual checkpoint_array saved_counters() const = 0;
  /// @}

  /// Values that commit() sets. begin_load() drops an earlier one, and waits for the work on the counters,
  /// which commit() frees. load_options() throws invalid_argument for options that the optimizer refuses;
  /// load_recorded() takes steps without numbers, too, and returns why they are none, or an empty text. @{
  [[nodiscard]] virtual state_counts& begin_load() = 0;
  virtual void load_options(const std::vector<manifest_fact>& options) = 0;
  [[nodiscard]] virtual std::string load_recorded(const recorded_steps& recorded) = 0;
  virtual checkpoint_array loaded_counters(std::size_t rows) = 0;
  /// @}

  /// The chunks of the file's counters that this object checks: the first, and every how many after it.
  [[nodiscard]] virtual std::pair<std::size_t, std::size_t> share_of_counters() const { return {0, 1}; }

 private:
  [[nodiscard]] std::int64_t whole(const load_source& source, const manifest_entry& stored, const char* fact,
                                   std::optional<std::int64_t> least) const;
  void prepare_options(const load_source& source, const manifest_entry& stored);
  /// The counters of the rows go into a new tensor: there may be none yet, or those of another policy.
  /// Returns the number of the file's arrays that it knows.
  std::size_t prepare_rows(const load_source& source, const manifest_entry& stored, state_counts& next,
                           std::vector<load_step>& steps);
  /// Kernels look up the steps that a row has missed, so they must be in the history.
  void require_recorded(const load_source& source, const manifest_array& counters, std::int64_t least,
                        std::int64_t steps) const;

  std::vector<kept_array> fields_;
  bool is_const_;
};

/// An optimizer with its state.
///
///   Optimizer  a rule or a chain; const if its options are compared on load instead of set
///   Space      of the state
template <class Optimizer, class Space>
class state_entry : public stored_state {
 public:
  using rule_type = optim::detail::rule_of<std::remove_const_t<Optimizer>>;
  using clock_type = optim::step_counters<rule_type, Space>;

  /// `fields` are the arrays of the state. The optimizer is used where it is, unless `optimizer` owns it.
  state_entry(std::string name, std::shared_ptr<Optimizer> optimizer,
              const std::vector<checkpoint_array>& fields, std::shared_ptr<clock_type> clock)
      : stored_state(std::move(name), fields, is_const),
        optimizer_(std::move(optimizer)),
        clock_(std::move(clock)) {}

  void commit() noexcept override {
    if constexpr (!is_const)
      if (next_.optimizer != nullptr) *optimizer_ = std::move(*next_.optimizer);
    clock_->steps = next_.steps;
    clock_->skipped = next_.skipped;
    clock_->seed = next_.seed;
    clock_->row_steps = std::move(next_.row_steps);
    clock_->row_policy = next_.row_policy;
    clock_->updates.restore(std::move(next_.recorded));
    next_ = {};
  }

 protected:
  static constexpr bool is_const = std::is_const_v<Optimizer>;

  /// Values that commit() sets.
  struct next_state : state_counts {
    std::unique_ptr<std::remove_const_t<Optimizer>> optimizer;
    tensor<std::uint32_t, Space> row_steps;
    recording_of<rule_type> recorded;
  };

  [[nodiscard]] state_counts counts() const override {
    return {clock_->steps, clock_->skipped, clock_->seed, clock_->row_policy};
  }
  [[nodiscard]] checkpoint_array saved_counters() const override {
    return as_stored("row_steps", make_ref(clock_->row_steps), name());
  }
  checkpoint_array loaded_counters(std::size_t rows) override {
    next_.row_steps = tensor<std::uint32_t, Space>(name() + "::row_steps", rows);
    return as_stored("row_steps", make_ref(next_.row_steps), name());
  }

  next_state next_;

 private:
  [[nodiscard]] std::vector<manifest_fact> optimizer() const override { return optimizer_facts(*optimizer_); }
  [[nodiscard]] recorded_steps recorded() const override {
    auto recording = clock_->updates.recorded();
    // Steps that were taken back are still there until another one replaces them.
    const auto taken_back = [this](const auto& record) { return record.first > clock_->steps; };
    std::erase_if(recording.spans, taken_back);
    std::erase_if(recording.rates, taken_back);
    return {recording.first, recording.in_double, history_numbers<rule_type>(recording)};
  }

  [[nodiscard]] state_counts& begin_load() override {
    next_ = {};
    if (const auto& accesses = clock_->row_steps.accesses(); accesses != nullptr) accesses->wait_for_all();
    return next_;
  }
  void load_options(const std::vector<manifest_fact>& options) override {
    if constexpr (!is_const) {
      next_.optimizer = std::make_unique<std::remove_const_t<Optimizer>>(*optimizer_);
      set_optimizer(*next_.optimizer, options);
      visit_optimizer(*next_.optimizer,
                      [](const auto& part, const std::string&, const std::string&) { part.check(); });
    }
  }
  [[nodiscard]] std::string load_recorded(const recorded_steps& steps) override {
    next_.recorded.first = steps.first;
    next_.recorded.in_double = steps.in_double;
    if (steps.numbers.empty()) return {};
    return read_history<rule_type>(
        steps.numbers, optim::detail::transforms_of<std::remove_const_t<Optimizer>>::rule_in(*optimizer_),
        next_.steps, next_.recorded);
  }

  std::shared_ptr<Optimizer> optimizer_;
  std::shared_ptr<clock_type> clock_;
};

/// The arrays of a state, or of records without the weights.
template <class Rule, class State>
std::vector<checkpoint_array> fields_of_state(const Rule& rule, State& state, const std::string& owner) {
  std::vector<checkpoint_array> arrays;
  for (int i = 0; i < state.fields(); ++i)
    arrays.push_back(as_stored(std::string(state.field_name(i)), state.field_ref(i), owner));
  int index = 0;
  boost::hana::for_each(rule.fields(), [&](const auto& described) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(described)>, optim::row_field>)
      arrays.push_back(as_stored(described.name, state.row_field_ref(index++), owner));
  });
  return arrays;
}

}  // namespace ferry::detail
