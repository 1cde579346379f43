// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/optimizer.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/quantized/quantizations/rowwise_int8.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

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
      names_[index(f)] = records.field_name(f);
      field_[index(f)] = untracked(records.field_ref(f));
    }
    for (int f = 0; f < row_fields; ++f) row_field_[index(f)] = untracked(records.row_field_ref(f));
  }

  [[nodiscard]] int fields() const { return fields_; }
  [[nodiscard]] std::string_view field_name(int f) const { return names_[index(f)]; }
  [[nodiscard]] field_type field_ref(int f) const { return tracked_by(field_[index(f)]); }
  [[nodiscard]] field_type row_field_ref(int f) const { return tracked_by(row_field_[index(f)]); }
  [[nodiscard]] const auto& clock() const { return clock_; }

  /// The state with the records' own record of accesses, which this object does not keep alive.
  [[nodiscard]] record_state with(const std::shared_ptr<access_tracker>& accesses) const {
    record_state state = *this;
    state.accesses_ = accesses;
    return state;
  }

 private:
  static constexpr std::size_t index(int f) { return static_cast<std::size_t>(f); }
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

/// True if T is a table whose codes and scales are arrays.
template <class T>
inline constexpr bool is_coded = is_quantized<std::remove_cv_t<T>> && !is_codes<std::remove_cv_t<T>>;

/// The scales and the factor of a quantized table behind a cache, instead of a state. They stay valid
/// when the table is moved.
template <class Q, class ScaleSpace>
class scales_behind {
 public:
  using scales_type = decltype(scales_ref(std::declval<quantized_tensor<Q, ScaleSpace, ScaleSpace>&>()));
  /// As verbs use them.
  struct content {
    scales_type scales;
    float tensor_scale;
  };

  template <class Table>
  explicit scales_behind(Table& table) : scales_(scales_ref(table)) {
    if constexpr (Q::has_tensor_scale) factor_ = factor_of(table);
    if constexpr (has_scales<Q>) {
      accesses_ = scales_.accesses;
      scales_.accesses.reset();  // so that their end shows
    }
  }

  /// Throws invalid_argument if the scales were destroyed. The codes are there: `accesses` are theirs.
  [[nodiscard]] content with(const std::shared_ptr<access_tracker>&) const {
    content current{scales_, factor_ == nullptr ? 1.0f : *factor_};
    if constexpr (has_scales<Q>) {
      current.scales.accesses = accesses_.lock();
      if (current.scales.accesses == nullptr)
        throw invalid_argument(joined("ferry: '", scales_.label, "' of a cached_table was destroyed"));
    }
    return current;
  }

 private:
  scales_type scales_;
  std::weak_ptr<access_tracker> accesses_;
  const float* factor_ = nullptr;
};

/// The table as an array_ref: of records the weights, of quantized rows the codes with the extents of
/// numbers.
template <class Table>
auto backing_ref(Table& table) {
  if constexpr (is_quantized<Table>)
    return numbers_of(table);
  else if constexpr (is_records<Table>)
    return table.table();
  else
    return make_ref(table);
}

template <class Table>
consteval auto backing_state() {
  if constexpr (is_coded<Table>)
    return std::type_identity<scales_behind<typename Table::quantization, typename Table::scale_space>>{};
  else if constexpr (is_records<Table>)
    return std::type_identity<record_state<Table>>{};
  else
    return std::type_identity<no_record_state>{};
}

/// True if scales are an array in host memory, which is cached with the codes.
template <class Table>
consteval bool has_cached_scales() {
  if constexpr (is_coded<Table>)
    return has_scales<typename Table::quantization> && Table::scale_space::is_host_accessible;
  else
    return false;
}

/// The backing table of a cache, in host memory, as verbs see it.
template <class Table>
struct backing_table {
  using ref_type = decltype(backing_ref(std::declval<Table&>()));
  using value_type = typename ref_type::value_type;  ///< std::byte for 8-bit rows
  using memory_space = typename ref_type::memory_space;
  static constexpr bool is_array = !is_quantized<Table> && !is_records<Table>;
  /// The array types that verbs check in place of the table; added_to is for scatter_add.
  /// @{
  using checked = std::conditional_t<is_array, Table, tensor<std::remove_const_t<value_type>, memory_space>>;
  using added_to = std::conditional_t<is_quantized<Table>, Table, checked>;
  /// @}
  /// The elements of rows that are gathered into a new tensor.
  using gathered = std::conditional_t<is_quantized<Table>, float, std::remove_const_t<value_type>>;
  /// The state or the scales that belong to its rows.
  using state = typename decltype(backing_state<Table>())::type;

  /// Bytes of a row that the cache keeps: of records and codes all of them.
  static std::int64_t row_bytes(const ref_type& array) {
    return (is_array ? array.width() : array.row_stride()) * static_cast<std::int64_t>(sizeof(value_type));
  }
  /// The array that verbs on whole tables take: of 8-bit rows the records.
  static auto whole(ref_type array) {
    static_assert(
        !is_coded<Table>,
        "ferry: verbs on whole tables take no cached_table before codes and scales; flush() it, and pass the quantized_tensor itself.");
    if constexpr (is_quantized<Table>) array.extents[1] = array.row_stride();
    return array;
  }
  /// make(array, more...): the array that the cache is of, and others that it caches with it. Scales of codes
  /// are cached if they lie in host memory, too.
  template <class Make>
  static auto cache(Table& table, const Make& make) {
    if constexpr (!is_coded<Table>) {
      return make(backing_ref(table));
    } else if constexpr (has_cached_scales<Table>()) {
      return make(make_ref(table.codes()), make_ref(table.scales()));
    } else {
      return make(make_ref(table.codes()));
    }
  }
};

}  // namespace ferry::detail
