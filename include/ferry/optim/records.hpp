// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/concepts/optimizer.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/detail/step_counters.hpp>
#include <ferry/optim/field.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::optim {

/// Weights and optimizer state of a table, with those of one row in one record. Over a link, a step moves a
/// row in one burst each way; separate tensors need one burst per array. Made by make_records; move-only.
///
///   record   weights, each active field, then the row fields; each part starts at a multiple of 32 bytes,
///            row fields are adjacent; zeros fill the gaps
///   table()  the weights, rows x width, for every verb; rows are row_bytes() bytes apart
///   field()  a field of the state in the same form, by position or by torch.optim's name
///
/// steps(), set_steps(), skipped(), seed(), set_seed() and row_steps() are those of optim::state.
template <Optimizer Rule, class T, class StateType, MemorySpace Space>
class records : public step_counted<Rule, Space> {
 public:
  using rule_type = Rule;        ///< the optimizer rule
  using value_type = StateType;  ///< elements of the state
  using memory_space = Space;    ///< where the records lie

  /// Number of the rule's fields with an element per weight, active or not.
  static constexpr int max_fields = detail::fields_of<Rule, ::ferry::optim::field>;
  /// Number of the rule's fields with one element per row.
  static constexpr int row_fields = detail::fields_of<Rule, row_field>;

  /// No records: the state of a moved-from object, to assign to.
  records() : step_counted<Rule, Space>("records") {}
  /// Memory for rows x width weights and `fields` active fields, not initialised; for make_records. Throws as
  /// ferry::tensor.
  records(std::string label, std::size_t rows, std::size_t width, int fields)
      : step_counted<Rule, Space>("records"),
        width_(width),
        fields_(fields),
        label_(std::move(label)),
        bytes_(label_, rows, row_bytes_of(width, fields)) {}

  /// Number of rows.
  [[nodiscard]] std::size_t rows() const { return bytes_.rows(); }
  /// Weights per row.
  [[nodiscard]] std::size_t width() const { return width_; }
  /// Size of a record in bytes.
  [[nodiscard]] std::size_t row_bytes() const { return bytes_.width(); }
  /// The label given to make_records.
  [[nodiscard]] const std::string& label() const { return label_; }
  /// The storage: rows() x row_bytes() bytes.
  /// @{
  [[nodiscard]] tensor<std::byte, Space>& bytes() { return bytes_; }
  [[nodiscard]] const tensor<std::byte, Space>& bytes() const { return bytes_; }
  /// @}

  /// The weights, rows() x width(): an argument of every verb that takes an array of rows.
  [[nodiscard]] ferry::detail::array_ref<T, Space> table() { return part<T>(0, width_, ""); }
  /// Number of fields that the rule's options use.
  [[nodiscard]] int fields() const { return fields_; }
  /// Active field i, rows() x width(), for i in [0, fields()).
  [[nodiscard]] ferry::detail::array_ref<StateType, Space> field(int i) { return field_ref(i); }
  /// torch.optim's name of active field i.
  [[nodiscard]] std::string_view field_name(int i) const { return names_.at(static_cast<std::size_t>(i)); }
  /// The active field or the row field (rows() x 1) with torch.optim's name, such as "exp_avg". Throws
  /// invalid_argument if there is none.
  [[nodiscard]] ferry::detail::array_ref<StateType, Space> field(std::string_view name) {
    for (int i = 0; i < fields_; ++i)
      if (names_[static_cast<std::size_t>(i)] == name) return field_ref(i);
    for (int i = 0; i < row_fields; ++i)
      if (row_names_[static_cast<std::size_t>(i)] == name) return row_field_ref(i);
    refuse_field_name("records", Rule::name, name);
  }
  /// Arrays of the fields and of the row fields, and the setters of their names; for the verbs and
  /// make_records.
  /// @{
  [[nodiscard]] ferry::detail::array_ref<StateType, Space> field_ref(int i) {
    return part<StateType>(offset_of(i), width_, names_.at(static_cast<std::size_t>(i)));
  }
  [[nodiscard]] ferry::detail::array_ref<StateType, Space> row_field_ref(int i) {
    return part<StateType>(offset_of(fields_) + static_cast<std::size_t>(i) * sizeof(StateType), 1,
                           row_names_.at(static_cast<std::size_t>(i)));
  }
  void name_field(int i, const char* name) { names_.at(static_cast<std::size_t>(i)) = name; }
  void name_row_field(int i, const char* name) { row_names_.at(static_cast<std::size_t>(i)) = name; }
  /// @}

 private:
  static constexpr std::size_t alignment = 32;
  static constexpr std::size_t padded(std::size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  }
  static std::size_t row_bytes_of(std::size_t width, int fields) {
    return padded(width * sizeof(T)) + static_cast<std::size_t>(fields) * padded(width * sizeof(StateType)) +
           padded(static_cast<std::size_t>(row_fields) * sizeof(StateType));
  }
  [[nodiscard]] std::size_t offset_of(int i) const {
    return padded(width_ * sizeof(T)) + static_cast<std::size_t>(i) * padded(width_ * sizeof(StateType));
  }
  template <class Element>
  ferry::detail::array_ref<Element, Space> part(std::size_t offset, std::size_t width,
                                                std::string_view name) {
    ferry::detail::array_ref<Element, Space> array;
    array.data = bytes_.data() == nullptr ? nullptr : reinterpret_cast<Element*>(bytes_.data() + offset);
    array.rank = 2;
    array.extents = {static_cast<std::int64_t>(rows()), static_cast<std::int64_t>(width)};
    array.strides = {static_cast<std::int64_t>(row_bytes() / sizeof(Element)), 1};
    array.label = name.empty() ? label_ : label_ + "::" + std::string(name);
    array.accesses = bytes_.accesses();
    return array;
  }

  static constexpr std::size_t room = max_fields == 0 ? 1 : static_cast<std::size_t>(max_fields);
  static constexpr std::size_t row_room = row_fields == 0 ? 1 : static_cast<std::size_t>(row_fields);

  std::size_t width_ = 0;
  int fields_ = 0;
  std::string label_;
  tensor<std::byte, Space> bytes_;
  std::array<std::string_view, room> names_{};
  std::array<std::string_view, row_room> row_names_{};
};

/// Records for a table of rows x width weights of type T in Space, and for the state of `rule`, with elements
/// of StateType. The state has its initial values. The weights are the caller's to initialise, see
/// ferry::init.
///
///   auto rows = optim::make_records<float, mapped_space>(adam, "weights", n, 128);
///   init::uniform(exec, rows.table(), -0.5f, 0.5f, 42);
///   step(exec, adam, rows, indices, grads).wait();
///
///   rule       an optimizer rule or optim::chain
///   label      name of the table in messages and statistics
///   StepCount  step_count::per_row and catch_up make the counters of the rows here; by default the first
///              step that needs them makes them
///
/// Blocks until the values are set. Throws invalid_argument for options outside of their range and for
/// extents that are negative or overflow; bad_alloc and budget_exceeded if the memory is not available.
template <class T, MemorySpace Space, class StateType = accumulation_t<T>, class Rule, std::integral Rows,
          std::integral Width, class StepCount = step_count::global>
[[nodiscard]] auto make_records(const Rule& rule, const std::string& label, Rows rows, Width width,
                                StepCount = {}) {
  using plain_rule = detail::rule_of<Rule>;
  static_assert(ferry::detail::DescribesRule<plain_rule>,
                "ferry: make_records needs an optimizer rule, ferry::optim::adam say.");
  detail::require_update<plain_rule>();
  static_assert(FloatingElement<T> && FloatingElement<StateType>,
                "ferry: records hold weights and state of float, double, half_t or bhalf_t elements only.");
  const auto& plain = detail::transforms_of<Rule>::rule_in(rule);
  plain.check();
  const auto sizes = ferry::detail::checked_extents(label, rows, width);
  // Overflow and negative sizes are found as a table of such rows finds them.
  (void)shape<dynamic_rank>::make(sizes, label, (sizeof(T) + 8 * sizeof(StateType)) * 2);
  records<plain_rule, T, StateType, Space> storage(label, sizes[0], sizes[1],
                                                   detail::active_fields(plain).count);
  const device placement = storage.bytes().device();
  detail::fill_new(make_ref(storage.bytes()), placement, std::byte{0});
  const auto [list, count] = detail::list_fields(plain);
  int fields = 0;
  int row_fields = 0;
  for (std::size_t f = 0; f < count; ++f) {
    const detail::field_facts& field = list[f];
    const auto value = detail::initial_value<StateType>(plain_rule::name, field);
    if (!field.active) continue;
    if (field.per_row)
      storage.name_row_field(row_fields, field.name);
    else
      storage.name_field(fields, field.name);
    const auto array = field.per_row ? storage.row_field_ref(row_fields++) : storage.field_ref(fields++);
    if (field.initial != 0.0) detail::fill_new(array, placement, value);
  }
  if constexpr (StepCount::counts_rows)
    storage.clock()->count_rows(StepCount::name,
                                detail::row_counters(*storage.clock(), storage.table(), device{}));
  return storage;
}

/// Refuses records without a label. Does not compile.
template <class T, MemorySpace Space, class StateType = accumulation_t<T>, class Rule, std::integral Rows,
          std::integral Width, class... StepCount>
void make_records(const Rule&, Rows, Width, StepCount...) {
  static_assert(
      sizeof(Rule) == 0,
      "ferry: make_records takes the label of the table after the rule: make_records<T, Space>(rule, \"weights\", rows, width).");
}

}  // namespace ferry::optim

template <class Rule, class T, class StateType, class Space>
inline constexpr bool ferry::detail::is_records<ferry::optim::records<Rule, T, StateType, Space>> = true;
