// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/compat/model_factory.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/optim/state.hpp>
#include <ferry/optim/step.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace ferry::speedtorch {

/// SpeedTorch's OptimizerFactory, the optimizer switcher: the optimizer's state for all rows of a model's
/// table, of which the rows of one batch visit device memory.
///
///   ferry::speedtorch::optimizer_factory adam(ferry::optim::sparse_adam{.lr = 1e-3}, words);
///
/// A batch is stepped in one of two ways, after words.before_forward_pass():
///
///   adam.step(exec, gradients).wait();       // ferry's fused step, on the table in place
///
///   adam.before_forward_pass(exec).wait();   // an optimizer of your own, as with SpeedTorch:
///   ... update words.weight() and adam.rows(i), the state "exp_avg" say, in device memory ...
///   adam.after_optimizer_step(exec).wait();
///   words.after_optimizer_step(exec).wait();
///
/// All of ferry's rules work, with all of their state for each row. The model must outlive the factory.
template <class Rule, class Model, MemorySpace Space = typename Model::memory_space>
class optimizer_factory {
 public:
  using state_type = decltype(optim::make_state<Space>(
      std::declval<const Rule&>(), std::declval<Model&>().table()));  ///< state of all rows
  using value_type = typename state_type::value_type;                 ///< elements of the state

  /// optInit: makes the state of all rows with its initial values; blocks. Throws as optim::make_state.
  optimizer_factory(const Rule& rule, Model& model)
      : rule_(rule), model_(&model), state_(optim::make_state<Space>(rule, model.table())) {}

  /// Sends the state of the model's batch to rows(). One ticket for all fields; empty for a rule that has
  /// none.
  template <class Exec>
  ticket before_forward_pass(const Exec& exec) {
    require_batch("before_forward_pass", model_->plan().storage() != nullptr);
    const auto rows = static_cast<std::size_t>(model_->plan().unique_count());
    ticket last;
    batch_.reset();
    windows_.resize(static_cast<std::size_t>(fields()));
    for (int i = 0; i < fields(); ++i) {
      auto& window = windows_[static_cast<std::size_t>(i)];
      if (window.rows() < rows)
        window =
            tensor<value_type, device_space>(field(i).label() + "::rows", rows + rows / 4, field(i).width());
      last.detach();
      last = gather(exec, field(i), model_->plan().unique_rows(), this->rows(i), bounds::unchecked{});
    }
    batch_ = model_->plan().storage();
    return last;
  }
  /// Writes rows() back to the state of the batch. One ticket for all fields.
  template <class Exec>
  ticket after_optimizer_step(const Exec& exec) {
    // The rows of an earlier batch would overwrite the state of this one's.
    const auto sent = batch_.lock();
    require_batch("after_optimizer_step", sent != nullptr && sent == model_->plan().storage());
    ticket last;
    for (int i = 0; i < fields(); ++i) {
      last.detach();
      last = scatter(exec, field(i), model_->plan().unique_rows(), rows(i), duplicates::assume_unique{},
                     bounds::unchecked{});
    }
    return last;
  }

  /// One step of the rule on the rows of the batch, in the table and the state. `gradients` has a row for
  /// each row of model.weight(), which is not updated. See ferry::step.
  template <class Exec, class Gradients, class... Policies>
  ticket step(const Exec& exec, const Gradients& gradients, Policies... policies) {
    require_batch("step", model_->plan().storage() != nullptr);
    return ferry::step(exec, rule_, model_->table(), state_, model_->plan().unique_rows(), gradients,
                       duplicates::assume_unique{}, bounds::unchecked{}, policies...);
  }

  /// Number of fields: those with an element for each weight, then those with one for each row.
  [[nodiscard]] int fields() const { return state_.fields() + state_type::row_fields; }
  /// Field i of all rows.
  [[nodiscard]] auto& field(int i) {
    return i < state_.fields() ? state_.field(i) : state_.row_field_at(i - state_.fields());
  }
  /// The rows of field i that before_forward_pass() sent, in the order of model.weight().
  [[nodiscard]] auto rows(int i) {
    return windows_.at(static_cast<std::size_t>(i))
        .first(static_cast<std::size_t>(model_->plan().unique_count()));
  }
  /// The state of all rows, to save and to restore: see ferry::io::checkpoint.
  /// @{
  [[nodiscard]] state_type& state() { return state_; }
  [[nodiscard]] const state_type& state() const { return state_; }
  /// @}
  /// The rule and its options, which may change between steps.
  /// @{
  [[nodiscard]] Rule& rule() { return rule_; }
  [[nodiscard]] const Rule& rule() const { return rule_; }
  /// @}

 private:
  void require_batch(const char* function, bool present) const {
    if (present) return;
    throw invalid_argument(detail::joined(
        "ferry::speedtorch::optimizer_factory::", function, ": '", model_->table().label(),
        "' has no batch yet, or one whose state was not sent; call before_forward_pass first"));
  }

  Rule rule_;
  Model* model_;
  state_type state_;
  std::vector<tensor<value_type, device_space>> windows_;
  std::weak_ptr<detail::plan_storage> batch_;  ///< of which the rows are in windows_
};

}  // namespace ferry::speedtorch
