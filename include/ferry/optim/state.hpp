// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/state_arrays.hpp>
#include <ferry/optim/detail/step_counters.hpp>
#include <ferry/optim/field.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

/// Optimizers: rules, transforms of their steps, and the state of a table. ferry::step and ferry::catch_up
/// use them.
///
///   rules       sgd, adagrad, rowwise_adagrad, adadelta, rmsprop, rprop, asgd, adam, adamw, adamax, nadam,
///               sparse_adam, partial_rowwise_adam, lamb, lars, lion, ftrl
///   transforms  clip_norm, clip_value, max_norm, grad_scale, row_rates, frozen_rows; see chain
///   state       make_state, or make_records for weights and state in one record per row
namespace ferry::optim {

/// The state of an optimizer for one table: a rows x width tensor per active field of the rule, a rows x 1
/// tensor per row field, and the number of steps taken. Made by make_state; move-only. The fields have
/// torch.optim's names. They may be read and written between steps, to save and restore training.
///
///   steps()      number of steps taken; a step with bad indices is taken back by its wait()
///   set_steps()  for a restored state; under step_count::catch_up it marks all rows as up to date
///   skipped()    number of steps that nonfinite::skip left out, of those waited for
///   seed()       seed of rounding::stochastic
///   set_seed()   sets it
///   row_steps()  one std::uint32_t per row: its steps under step_count::per_row, the last step applied to it
///                under step_count::catch_up; empty before the first step under such a policy
template <Optimizer Rule, class T, MemorySpace Space>
class state : public step_counted<Rule, Space>, public detail::state_arrays<T, Space> {
 public:
  using rule_type = Rule;                ///< the optimizer rule
  using value_type = T;                  ///< elements of the state
  using memory_space = Space;            ///< where the tensors lie
  using tensor_type = tensor<T, Space>;  ///< a field

  /// Number of the rule's fields with an element per weight, active or not.
  static constexpr int max_fields = detail::fields_of<Rule, ::ferry::optim::field>;
  /// Number of the rule's fields with one element per row.
  static constexpr int row_fields = detail::fields_of<Rule, row_field>;

  /// A state without fields, to assign to.
  state() : step_counted<Rule, Space>("state"), detail::state_arrays<T, Space>(row_fields) {}

  using detail::state_arrays<T, Space>::field;
  /// The active field or the row field with torch.optim's name, such as "exp_avg". Throws invalid_argument
  /// if there is none.
  /// @{
  [[nodiscard]] tensor_type& field(std::string_view name) { return this->named(Rule::name, name); }
  [[nodiscard]] const tensor_type& field(std::string_view name) const {
    return const_cast<state&>(*this).field(name);
  }
  /// @}
};

}  // namespace ferry::optim

template <class Rule, class T, class Space>
inline constexpr bool ferry::detail::is_state<ferry::optim::state<Rule, T, Space>> = true;
