// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/concepts/optimizer.hpp>
#include <ferry/memory/device.hpp>
#include <ferry/optim/detail/step_counters.hpp>
#include <ferry/optim/field.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::optim::detail {

/// A new tensor with all elements set to `value`. Blocks until they are set. For elements of state and
/// counters of rows.
template <class T, MemorySpace Space>
tensor<T, Space> filled(const std::string& label, device placement, std::span<const std::size_t> extents,
                        T value);

/// The initial value of a field in elements of the state. Throws invalid_argument for one that would be 0 or
/// infinite.
template <class StateType>
StateType initial_value(std::string_view rule, const row_field& field);

}  // namespace ferry::optim::detail

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
template <Optimizer Rule, class T, MemorySpace Space>
class state : public step_counted<Rule, Space> {
  using counted = step_counted<Rule, Space>;

 public:
  using rule_type = Rule;                ///< the optimizer rule
  using value_type = T;                  ///< elements of the state
  using memory_space = Space;            ///< where the tensors lie
  using tensor_type = tensor<T, Space>;  ///< a field

  /// A state without fields, to assign to.
  state() : counted("state"), tensors_(static_cast<std::size_t>(counted::row_fields)) {}
  /// Makes the fields of `list` for a table of rows x width elements, with their initial values. For
  /// make_state.
  state(const detail::field_list& list, const ferry::detail::array_label& table, device placement,
        std::int64_t rows, std::int64_t width)
      : counted("state", list) {
    for (std::size_t f = 0; f < this->names_.size(); ++f) {
      const bool per_row = f >= static_cast<std::size_t>(list.fields);
      const std::array<std::size_t, 2> extents{static_cast<std::size_t>(rows),
                                               static_cast<std::size_t>(per_row ? 1 : width)};
      tensors_.push_back(detail::filled<T, Space>(table + "::" + list.facts[f].name, placement, extents,
                                                  detail::initial_value<T>(Rule::name, list.facts[f])));
    }
  }
  /// Takes the contents of the other state.
  state(state&&) noexcept = default;
  /// Contents that are moved to themselves stay.
  state& operator=(state&& source) noexcept {
    state temporary(std::move(source));
    counted::operator=(std::move(temporary));
    tensors_.swap(temporary.tensors_);
    return *this;
  }
  ~state() = default;

  /// Active field i, for i in [0, fields()). Throws std::out_of_range beyond.
  /// @{
  [[nodiscard]] tensor_type& field(int i) { return tensors_.at(this->field_index(i)); }
  [[nodiscard]] const tensor_type& field(int i) const { return tensors_.at(this->field_index(i)); }
  /// @}
  /// The active field or the row field with torch.optim's name, such as "exp_avg". Throws invalid_argument
  /// if there is none.
  /// @{
  [[nodiscard]] tensor_type& field(std::string_view name) { return tensors_[this->field_index(name)]; }
  [[nodiscard]] const tensor_type& field(std::string_view name) const {
    return tensors_[this->field_index(name)];
  }
  /// @}
  /// Row field i, with one element per row of the table, for i in [0, row_fields).
  /// @{
  [[nodiscard]] tensor_type& row_field_at(int i) { return tensors_.at(this->row_field_index(i)); }
  [[nodiscard]] const tensor_type& row_field_at(int i) const { return tensors_.at(this->row_field_index(i)); }
  /// @}

  /// The fields as the verbs take them.
  /// @{
  [[nodiscard]] ferry::detail::array_ref<T, Space> field_ref(int i) { return make_ref(field(i)); }
  [[nodiscard]] ferry::detail::array_ref<T, Space> row_field_ref(int i) { return make_ref(row_field_at(i)); }
  /// @}

 private:
  std::vector<tensor_type> tensors_;  // in the order of the names
};

}  // namespace ferry::optim

namespace ferry::detail {

template <class Rule, class T, class Space>
inline constexpr bool is_state<optim::state<Rule, T, Space>> = true;

template <class T>
inline constexpr bool is_state_of_table = false;
template <class Rule, class T, class Space>
inline constexpr bool is_state_of_table<optim::state<Rule, T, Space>> = true;

/// The state of a table that is not sharded.
template <class T>
concept StateOfTable = is_state_of_table<T>;

}  // namespace ferry::detail
