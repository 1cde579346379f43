#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/concepts/optimizer.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/detail/field.hpp>
#include <ferry/optim/detail/step_counted.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::optim {

/// The state of an optimizer for one table: a tensor of the table's rows and width for each active field of
/// the rule, one number for each row for each of its row fields, and the number of steps taken. Made by make_state;
/// move-only. The tensors are named as torch.optim names them, and may be read and written between steps (to save and
/// restore training).
template <Optimizer Rule, class T, MemorySpace Space>
class state : public step_counted<Rule, Space> {
 public:
  using rule_type = Rule;
  using value_type = T;
  using memory_space = Space;
  using tensor_type = tensor<T, Space>;

  static constexpr int max_fields = detail::fields_of<Rule, ::ferry::optim::field>;
  static constexpr int row_fields = detail::fields_of<Rule, row_field>;

  state() : step_counted<Rule, Space>("state") {}

  /// Number of fields that the rule's options use.
  [[nodiscard]] int fields() const { return fields_; }
  [[nodiscard]] tensor_type& field(int i) { return tensors_.at(static_cast<std::size_t>(i)); }
  [[nodiscard]] const tensor_type& field(int i) const { return tensors_.at(static_cast<std::size_t>(i)); }
  [[nodiscard]] std::string_view field_name(int i) const { return names_.at(static_cast<std::size_t>(i)); }

  /// Of one element for each row of the table; row_fields of them.
  [[nodiscard]] tensor_type& row_field_at(int i) { return row_tensors_.at(static_cast<std::size_t>(i)); }
  [[nodiscard]] const tensor_type& row_field_at(int i) const {
    return row_tensors_.at(static_cast<std::size_t>(i));
  }

  /// By torch.optim's name, "exp_avg" say; throws invalid_argument where the rule has no such active field.
  [[nodiscard]] tensor_type& field(std::string_view name) { return *find(*this, name); }
  [[nodiscard]] const tensor_type& field(std::string_view name) const { return *find(*this, name); }

  void add_field(const char* name, tensor_type&& values) {
    names_.at(static_cast<std::size_t>(fields_)) = name;
    tensors_.at(static_cast<std::size_t>(fields_)) = std::move(values);
    ++fields_;
  }

  void add_row_field(int place, const char* name, tensor_type&& values) {
    row_names_.at(static_cast<std::size_t>(place)) = name;
    row_tensors_.at(static_cast<std::size_t>(place)) = std::move(values);
  }

  /// The fields as the verbs see them.
  [[nodiscard]] array_ref<T, Space> field_ref(int i) { return make_ref(field(i)); }
  [[nodiscard]] array_ref<T, Space> row_field_ref(int i) { return make_ref(row_field_at(i)); }

 private:
  template <class Self>
  static auto find(Self& self, std::string_view name) -> decltype(&self.field(0)) {
    for (int i = 0; i < self.fields_; ++i)
      if (self.field_name(i) == name) return &self.field(i);
    for (int i = 0; i < row_fields; ++i)
      if (self.row_names_[static_cast<std::size_t>(i)] == name) return &self.row_field_at(i);
    throw invalid_argument("ferry::optim::state: " + std::string(Rule::name) + " has no active state '" +
                           std::string(name) + "'");
  }

  static constexpr std::size_t room = max_fields == 0 ? 1 : static_cast<std::size_t>(max_fields);
  static constexpr std::size_t row_room = row_fields == 0 ? 1 : static_cast<std::size_t>(row_fields);

  int fields_ = 0;
  std::array<const char*, room> names_{};
  std::array<tensor_type, room> tensors_{};
  std::array<std::string_view, row_room> row_names_{};
  std::array<tensor_type, row_room> row_tensors_{};
};

}  // namespace ferry::optim

template <class Rule, class T, class Space>
inline constexpr bool ferry::detail::is_state<ferry::optim::state<Rule, T, Space>> = true;
