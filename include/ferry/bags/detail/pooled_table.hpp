#pragma once

#include <ferry/int8/detail/rowwise_int8_weights.hpp>
#include <ferry/rows/detail/prefetch.hpp>
#include <ferry/rows/detail/row_weights.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// A table whose rows are pooled: numbers, or records of 8-bit rows.
template <class T>
struct pooled_table {
  nearest_weights<const T> rows;

  static constexpr std::int64_t element_bytes = sizeof(T);

  KOKKOS_FORCEINLINE_FUNCTION auto row(std::int64_t at, std::int64_t width) const {
    return rows.row(at, width);
  }
  KOKKOS_FORCEINLINE_FUNCTION void prefetch(std::int64_t at, std::int64_t row_bytes) const {
    look_ahead::prefetch(rows.data + at * rows.stride, row_bytes);
  }
};
template <>
struct pooled_table<std::byte> {
  rowwise_int8_weights<false> rows;

  static constexpr std::int64_t element_bytes = 1;

  KOKKOS_FORCEINLINE_FUNCTION auto row(std::int64_t at, std::int64_t width) const {
    return rows.row(at, width);
  }
  KOKKOS_FORCEINLINE_FUNCTION void prefetch(std::int64_t at, std::int64_t row_bytes) const {
    look_ahead::prefetch(rows.records + at * rows.record_bytes, row_bytes);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

template <class T, class Space>
auto pooled_table_of(const array_ref<T, Space>& table) {
  using plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<plain, std::byte>)
    return kernels::pooled_table<plain>{{const_cast<plain*>(table.data), table.row_stride(), {0, 0}}};
  else
    return kernels::pooled_table<plain>{{table.data, table.row_stride()}};
}

}  // namespace ferry::detail
