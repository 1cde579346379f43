// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <string>

namespace ferry::detail {

/// Rows that one part of a copy by lists moves, so that its buffers stay small.
inline constexpr std::int64_t copied_at_once = 1 << 16;

/// Rows [begin, begin + count) of an array with dense rows.
template <class T, class Space>
array_ref<T, Space> part_of(array_ref<T, Space> array, std::int64_t begin, std::int64_t count) {
  array.data += begin * array.row_stride();
  array.extents[0] = count;
  return array;
}

template <class Table, class Array>
void require_same_extents(const char* verb, const Table& table, const Array& array) {
  require_dense_rows(verb, array);
  if (array.rows() != static_cast<std::int64_t>(table.rows()) ||
      array.width() != static_cast<std::int64_t>(table.width()))
    throw invalid_argument(
        joined("ferry::", verb, ": the extents of ", table.describe(), " and ", array.describe(), " differ"));
}

template <class Exec>
using row_list = tensor<std::int64_t, wire_space<Exec>>;

}  // namespace ferry::detail
