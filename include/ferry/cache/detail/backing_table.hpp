// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/record_state.hpp>
#include <ferry/cache/detail/scales_behind.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/rowwise_int8_rows.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/quantized/rowwise_int8_tensor.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry::detail {

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

  static auto ref(rowwise_int8_tensor<Space>& table) { return codes_of(table); }
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
/// Of optimizer records the weights are the table. The cache keeps whole records.
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
