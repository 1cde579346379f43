// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/concepts/optimizer.hpp>
#include <ferry/optim/detail/step_counters.hpp>
#include <ferry/optim/field.hpp>
#include <ferry/optim/make_state.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

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
  using counted = step_counted<Rule, Space>;
  using state_ref = ferry::detail::array_ref<StateType, Space>;

 public:
  using rule_type = Rule;        ///< the optimizer rule
  using value_type = StateType;  ///< elements of the state
  using memory_space = Space;    ///< where the records lie

  /// No records: the state of a moved-from object, to assign to.
  records() : counted("records") {}
  /// Memory for rows x width weights and the fields of `list`, not initialised; for make_records. Throws as
  /// ferry::tensor.
  records(std::string label, std::size_t rows, std::size_t width, const detail::field_list& list)
      : counted("records", list),
        width_(width),
        label_(std::move(label)),
        bytes_(label_, rows, offset_of(this->names_.size())) {}

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
  /// Active field i, rows() x width(), for i in [0, fields()). Throws std::out_of_range beyond.
  [[nodiscard]] state_ref field(int i) { return field_at(this->field_index(i)); }
  /// The active field or the row field (rows() x 1) with torch.optim's name, such as "exp_avg". Throws
  /// invalid_argument if there is none.
  [[nodiscard]] state_ref field(std::string_view name) { return field_at(this->field_index(name)); }
  /// The fields as the verbs take them.
  /// @{
  [[nodiscard]] state_ref field_ref(int i) { return field(i); }
  [[nodiscard]] state_ref row_field_ref(int i) { return field_at(this->row_field_index(i)); }
  /// @}

 private:
  static constexpr std::size_t padded(std::size_t bytes) { return (bytes + 31) / 32 * 32; }
  /// Offset of a field in a record; of the number of all fields, the size of the record.
  [[nodiscard]] std::size_t offset_of(std::size_t index) const {
    const auto fields = static_cast<std::size_t>(this->fields());
    const std::size_t before = index < fields ? index : fields;
    const std::size_t row_bytes = (index - before) * sizeof(StateType);
    return padded(width_ * sizeof(T)) + before * padded(width_ * sizeof(StateType)) +
           (index == this->names_.size() ? padded(row_bytes) : row_bytes);
  }
  [[nodiscard]] state_ref field_at(std::size_t index) {
    const bool per_row = index >= static_cast<std::size_t>(this->fields());
    return part<StateType>(offset_of(index), per_row ? 1 : width_, this->names_.at(index));
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

  std::size_t width_ = 0;
  std::string label_;
  tensor<std::byte, Space> bytes_;
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
///   StepCount  as in make_state
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
  const auto list = detail::active_fields(plain);
  records<plain_rule, T, StateType, Space> storage(label, sizes[0], sizes[1], list);
  const device placement = storage.bytes().device();
  detail::fill_new(make_ref(storage.bytes()), placement, std::byte{0});
  for (int f = 0; f < list.count; ++f) {
    const row_field& field = list.facts[static_cast<std::size_t>(f)];
    const auto value = detail::initial_value<StateType>(plain_rule::name, field);
    if (field.initial != 0.0) detail::fill_new(storage.field(field.name), placement, value);
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
