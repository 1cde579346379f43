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
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/quantized/rowwise_int8_tensor.hpp>
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

/// True if T is a table whose codes and scales are arrays.
template <class T>
inline constexpr bool is_coded = is_quantized<std::remove_cv_t<T>> && !is_codes<std::remove_cv_t<T>>;

/// The scales and the factor of a quantized table behind a cache, in the place of a state. They stay valid
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

/// The backing table of a cache, in host memory, as verbs see it.
///
///   value_type     its elements, std::byte for 8-bit rows
///   checked        the type that stands for it in the checks of verbs
///   added_to       the same for scatter_add
///   state          the state that lies in its rows: see record_state
///   gathered       the elements of rows that are gathered into a new tensor
///   ref(table)     an array_ref, for 8-bit rows of their codes
///   row_bytes(ref) bytes of a row that the cache keeps
///   whole(ref)     the array that verbs on whole tables take: of 8-bit rows the records
///   cache(table, make)
///                  make(array, more...): the array that the cache is of, and others that it caches with it
template <class Table>
struct backing_table {
  using value_type = typename array_traits<Table>::value_type;
  using memory_space = typename array_traits<Table>::memory_space;
  using checked = Table;
  using added_to = Table;
  using gathered = std::remove_const_t<value_type>;
  using state = no_record_state;

  static auto ref(Table& table) { return make_ref(table); }
  template <class Make>
  static auto cache(Table& table, const Make& make) {
    return make(ref(table));
  }
  static std::int64_t row_bytes(const array_ref<value_type, memory_space>& array) {
    return array.width() * static_cast<std::int64_t>(sizeof(value_type));
  }
  static const auto& whole(const array_ref<value_type, memory_space>& array) { return array; }
};
template <class Space>
struct backing_table<rowwise_int8_tensor<Space>> {
  using value_type = std::byte;
  using memory_space = Space;
  using checked = tensor<std::byte, Space>;
  using added_to = rowwise_int8_tensor<Space>;
  using gathered = float;
  using state = no_record_state;

  static auto ref(rowwise_int8_tensor<Space>& table) { return numbers_of(table); }
  template <class Make>
  static auto cache(rowwise_int8_tensor<Space>& table, const Make& make) {
    return make(ref(table));
  }
  static std::int64_t row_bytes(const array_ref<std::byte, Space>& array) { return array.row_stride(); }
  static auto whole(const array_ref<std::byte, Space>& array) {
    auto records = array;
    records.extents[1] = array.row_stride();
    return records;
  }
};
/// Weights are the table of optimizer records. The cache keeps whole records.
template <class Rule, class T, class StateType, class Space>
struct backing_table<optim::records<Rule, T, StateType, Space>> {
  using value_type = T;
  using memory_space = Space;
  using checked = tensor<T, Space>;
  using added_to = tensor<T, Space>;
  using gathered = T;
  using state = record_state<optim::records<Rule, T, StateType, Space>>;

  static auto ref(optim::records<Rule, T, StateType, Space>& table) { return table.table(); }
  template <class Make>
  static auto cache(optim::records<Rule, T, StateType, Space>& table, const Make& make) {
    return make(ref(table));
  }
  static std::int64_t row_bytes(const array_ref<T, Space>& array) {
    return array.row_stride() * static_cast<std::int64_t>(sizeof(T));
  }
  static const auto& whole(const array_ref<T, Space>& array) { return array; }
};
/// The codes of quantized rows are the table, and their scales are cached with them if they lie in host
/// memory, too.
template <class Q, class Space, class ScaleSpace>
  requires(!Q::in_records)
struct backing_table<quantized_tensor<Q, Space, ScaleSpace>> {
  using table_type = quantized_tensor<Q, Space, ScaleSpace>;
  using value_type = typename Q::code_type;
  using memory_space = Space;
  using checked = tensor<typename Q::code_type, Space>;
  using added_to = table_type;
  using gathered = float;
  using state = scales_behind<Q, ScaleSpace>;

  static auto ref(table_type& table) { return numbers_of(table); }
  template <class Make>
  static auto cache(table_type& table, const Make& make) {
    const auto codes = make_ref(table.codes());
    if constexpr (has_scales<Q> && ScaleSpace::is_host_accessible)
      return make(codes, make_ref(table.scales()));
    else
      return make(codes);
  }
  static std::int64_t row_bytes(const array_ref<value_type, Space>& array) {
    return array.row_stride() * static_cast<std::int64_t>(sizeof(value_type));
  }
  static const auto& whole(const array_ref<value_type, Space>& array) {
    static_assert(
        std::is_void_v<Q>,
        "ferry: verbs on whole tables take no cached_table before codes and scales; flush() it, and pass the quantized_tensor itself.");
    return array;
  }
};

}  // namespace ferry::detail
