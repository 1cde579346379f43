// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/device.hpp>
#include <ferry/optim/field.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/half.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::optim::detail {

/// A field of a rule, of either kind.
struct field_facts {
  const char* name;
  double initial;
  bool active;
  bool per_row;
};

/// The tensors of an optimizer's state. A public base of optim::state; it does not depend on the rule.
template <class T, MemorySpace Space>
class state_arrays {
 public:
  /// Number of fields that the rule's options use.
  [[nodiscard]] int fields() const { return static_cast<int>(fields_.size()); }
  /// Active field i, for i in [0, fields()). Throws std::out_of_range beyond.
  /// @{
  [[nodiscard]] tensor<T, Space>& field(int i);
  [[nodiscard]] const tensor<T, Space>& field(int i) const;
  /// @}
  /// torch.optim's name of active field i.
  [[nodiscard]] std::string_view field_name(int i) const;

  /// Row field i, with one element per row of the table, for i in [0, row_fields).
  /// @{
  [[nodiscard]] tensor<T, Space>& row_field_at(int i);
  [[nodiscard]] const tensor<T, Space>& row_field_at(int i) const;
  /// @}

  /// The fields as the verbs take them.
  /// @{
  [[nodiscard]] ferry::detail::array_ref<T, Space> field_ref(int i) { return make_ref(field(i)); }
  [[nodiscard]] ferry::detail::array_ref<T, Space> row_field_ref(int i) { return make_ref(row_field_at(i)); }
  /// @}

  /// Makes the active ones of `fields` for a table of rows x width elements, with their initial values. For
  /// make_state.
  void make_fields(std::string_view rule, std::span<const field_facts> fields,
                   const ferry::detail::array_label& table, device home, std::int64_t rows,
                   std::int64_t width);

 protected:
  explicit state_arrays(int row_fields);
  state_arrays(state_arrays&&) noexcept;
  state_arrays& operator=(state_arrays&&) noexcept;
  ~state_arrays();

  /// The field of either kind with that name. Throws invalid_argument if the rule has none.
  [[nodiscard]] tensor<T, Space>& named(std::string_view rule, std::string_view name);

 private:
  struct named_tensor {
    const char* name = "";
    tensor<T, Space> values;
  };

  std::vector<named_tensor> fields_;
  std::vector<named_tensor> row_fields_;
};

/// A new tensor with all elements set to `value`. Blocks until they are set. For elements of state and
/// counters of rows.
template <class T, MemorySpace Space>
tensor<T, Space> filled(const std::string& label, device home, std::span<const std::size_t> extents, T value);

}  // namespace ferry::optim::detail
