// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/int8/detail/rowwise_int8_rows.hpp>
#include <ferry/int8/rowwise_int8_tensor.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::detail {

/// The backing table of a cache, in host memory, as verbs see it.
///
///   value_type     its elements, std::byte for 8-bit rows
///   checked        the type that stands for it in the checks of verbs
///   gathered       the elements of rows that are gathered into a new tensor
///   ref(table)     an array_ref, for 8-bit rows of their codes
///   row_bytes(ref) bytes of a row that the cache keeps
///   whole(ref)     the array that verbs on whole tables take: of 8-bit rows the records
template <class Table>
struct backing_table {
  using value_type = typename array_traits<Table>::value_type;
  using memory_space = typename array_traits<Table>::memory_space;
  using checked = Table;
  using gathered = value_type;

  static auto ref(Table& table) { return make_ref(table); }
  static std::int64_t row_bytes(const array_ref<value_type, memory_space>& of) {
    return of.width() * static_cast<std::int64_t>(sizeof(value_type));
  }
  static const auto& whole(const array_ref<value_type, memory_space>& of) { return of; }
};
template <class Space>
struct backing_table<rowwise_int8_tensor<Space>> {
  using value_type = std::byte;
  using memory_space = Space;
  using checked = tensor<std::byte, Space>;
  using gathered = float;

  static auto ref(rowwise_int8_tensor<Space>& table) { return codes_of(table); }
  static std::int64_t row_bytes(const array_ref<std::byte, Space>& of) { return of.row_stride(); }
  static auto whole(const array_ref<std::byte, Space>& of) {
    auto made = of;
    made.extents[1] = of.row_stride();
    return made;
  }
};

}  // namespace ferry::detail
