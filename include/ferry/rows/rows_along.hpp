// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/arguments.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstddef>

namespace ferry {

namespace detail {
/// The array with dimension `number` before the others, which keep their order. Throws invalid_argument if it
/// has no such dimension.
[[nodiscard]] array_shape with_rows_along(const untyped_array& array, std::size_t number);
}  // namespace detail

/// An array as a table whose rows are the sub-arrays at each index of dimension `Dimension`: of a cache
/// [layers, blocks, heads, tokens, dim] rows_along<1> has a row for each block, [layers, heads, tokens, dim].
/// For copy_rows and copy, which take rows in pieces. Any strides; the array must outlive the result, which
/// does not compile for a temporary tensor, vector or array. Throws invalid_argument if the array has no
/// such dimension.
template <std::size_t Dimension, class Array>
  requires(detail::AnArray<Array>)
[[nodiscard]] auto rows_along(Array&& array) {
  detail::require_lasting<Array>();
  auto rows = make_ref(array);
  static_cast<detail::array_shape&>(rows) = detail::with_rows_along(rows, Dimension);
  return rows;
}

}  // namespace ferry
