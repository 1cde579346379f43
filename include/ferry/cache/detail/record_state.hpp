// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/concepts/optimizer.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>

namespace ferry::detail {

/// The state in optimizer records, with the members of optim::state that a step uses. It stays valid when the
/// records are moved.
template <class Records>
class record_state;
template <class Rule, class T, class StateType, class Space>
class record_state<optim::records<Rule, T, StateType, Space>> {
 public:
  using records_type = optim::records<Rule, T, StateType, Space>;
  using rule_type = Rule;
  using value_type = StateType;
  using memory_space = Space;
  using field_type = array_ref<StateType, Space>;

  static constexpr int max_fields = records_type::max_fields;
  static constexpr int row_fields = records_type::row_fields;

  explicit record_state(records_type& records) : fields_(records.fields()), clock_(records.clock()) {
    for (int f = 0; f < fields_; ++f) {
      names_[place(f)] = records.field_name(f);
      field_[place(f)] = untracked(records.field_ref(f));
    }
    for (int f = 0; f < row_fields; ++f) row_field_[place(f)] = untracked(records.row_field_ref(f));
  }

  [[nodiscard]] int fields() const { return fields_; }
  [[nodiscard]] std::string_view field_name(int f) const { return names_[place(f)]; }
  [[nodiscard]] field_type field_ref(int f) const { return tracked_by(field_[place(f)]); }
  [[nodiscard]] field_type row_field_ref(int f) const { return tracked_by(row_field_[place(f)]); }
  [[nodiscard]] const auto& clock() const { return clock_; }

  /// The state with the records' own record of accesses, which this object does not keep alive.
  [[nodiscard]] record_state with(const std::shared_ptr<access_tracker>& accesses) const {
    record_state state = *this;
    state.accesses_ = accesses;
    return state;
  }

 private:
  static constexpr std::size_t place(int f) { return static_cast<std::size_t>(f); }
  static field_type untracked(field_type field) {
    field.accesses.reset();
    return field;
  }
  [[nodiscard]] field_type tracked_by(field_type field) const {
    field.accesses = accesses_;
    return field;
  }

  int fields_ = 0;
  std::shared_ptr<typename records_type::clock_type> clock_;
  std::shared_ptr<access_tracker> accesses_;
  std::array<std::string_view, max_fields == 0 ? 1 : max_fields> names_{};
  std::array<field_type, max_fields == 0 ? 1 : max_fields> field_{};
  std::array<field_type, row_fields == 0 ? 1 : row_fields> row_field_{};
};

/// For tables whose state lies elsewhere.
struct no_record_state {
  explicit no_record_state(const auto&) {}
};

}  // namespace ferry::detail
