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
StateType initial_value(std::string_view rule, const field_facts& field);

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
  state() : step_counted<Rule, Space>("state"), row_fields_(static_cast<std::size_t>(row_fields)) {}
  /// Takes the contents of the other state.
  state(state&&) noexcept = default;
  /// Contents that are moved to themselves stay.
  state& operator=(state&& source) noexcept {
    state temporary(std::move(source));
    step_counted<Rule, Space>::operator=(std::move(temporary));
    fields_.swap(temporary.fields_);
    row_fields_.swap(temporary.row_fields_);
    return *this;
  }
  ~state() = default;

  /// Number of fields that the rule's options use.
  [[nodiscard]] int fields() const { return static_cast<int>(fields_.size()); }
  /// Active field i, for i in [0, fields()). Throws std::out_of_range beyond.
  /// @{
  [[nodiscard]] tensor_type& field(int i) { return fields_.at(static_cast<std::size_t>(i)).values; }
  [[nodiscard]] const tensor_type& field(int i) const { return const_cast<state&>(*this).field(i); }
  /// @}
  /// torch.optim's name of active field i.
  [[nodiscard]] std::string_view field_name(int i) const {
    return fields_.at(static_cast<std::size_t>(i)).name;
  }
  /// The active field or the row field with torch.optim's name, such as "exp_avg". Throws invalid_argument
  /// if there is none.
  /// @{
  [[nodiscard]] tensor_type& field(std::string_view name) {
    for (auto* const list : {&fields_, &row_fields_})
      for (named_tensor& member : *list)
        if (member.name == name) return member.values;
    refuse_field_name("state", Rule::name, name);
  }
  [[nodiscard]] const tensor_type& field(std::string_view name) const {
    return const_cast<state&>(*this).field(name);
  }
  /// @}

  /// Row field i, with one element per row of the table, for i in [0, row_fields).
  /// @{
  [[nodiscard]] tensor_type& row_field_at(int i) {
    if (row_fields_.empty()) refuse_moved_contents("state");
    return row_fields_.at(static_cast<std::size_t>(i)).values;
  }
  [[nodiscard]] const tensor_type& row_field_at(int i) const {
    return const_cast<state&>(*this).row_field_at(i);
  }
  /// @}

  /// The fields as the verbs take them.
  /// @{
  [[nodiscard]] ferry::detail::array_ref<T, Space> field_ref(int i) { return make_ref(field(i)); }
  [[nodiscard]] ferry::detail::array_ref<T, Space> row_field_ref(int i) { return make_ref(row_field_at(i)); }
  /// @}

  /// Makes the active ones of `facts` for a table of rows x width elements, with their initial values. For
  /// make_state.
  void make_fields(std::span<const detail::field_facts> facts, const ferry::detail::array_label& table,
                   device placement, std::int64_t rows, std::int64_t width) {
    std::size_t row_field = 0;
    for (const detail::field_facts& fact : facts) {
      const T value = detail::initial_value<T>(Rule::name, fact);
      if (!fact.active) continue;
      const std::array<std::size_t, 2> extents{static_cast<std::size_t>(rows),
                                               static_cast<std::size_t>(fact.per_row ? 1 : width)};
      named_tensor member{fact.name,
                          detail::filled<T, Space>(table + "::" + fact.name, placement, extents, value)};
      if (fact.per_row)
        row_fields_.at(row_field++) = std::move(member);
      else
        fields_.push_back(std::move(member));
    }
  }

 private:
  struct named_tensor {
    std::string_view name;
    tensor_type values;
  };

  std::vector<named_tensor> fields_;
  std::vector<named_tensor> row_fields_;
};

}  // namespace ferry::optim

template <class Rule, class T, class Space>
inline constexpr bool ferry::detail::is_state<ferry::optim::state<Rule, T, Space>> = true;
