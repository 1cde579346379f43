// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Eigen's matrices, arrays and maps as arguments of verbs, and tensors as Eigen::Map. Opt-in: include it
/// next to ferry.hpp. Needs Eigen 3.4 or later.

#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <Eigen/Core>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace ferry {

namespace detail {

/// A matrix or array of Eigen whose elements lie in memory: no product, sum or other expression.
template <class T>
concept EigenArray = requires {
  typename T::Scalar;
  typename T::PlainObject;
  { T::Flags& Eigen::DirectAccessBit } -> std::convertible_to<unsigned>;
}
&&std::derived_from<T, Eigen::DenseBase<T>>&& static_cast<bool>(T::Flags& Eigen::DirectAccessBit);

/// True if rows are adjacent in memory. A vector is an array of rank 1, in either layout.
template <EigenArray Matrix>
inline constexpr bool has_eigen_rows = Matrix::IsVectorAtCompileTime != 0 ||
                                       static_cast<bool>(Matrix::Flags& Eigen::RowMajorBit);

template <class T, EigenArray Matrix>
array_ref<T, pageable_space> eigen_ref(T* data, const Matrix& matrix) {
  array_ref<T, pageable_space> ref;
  ref.data = data;
  ref.label = "Eigen matrix";
  if constexpr (Matrix::IsVectorAtCompileTime != 0) {
    ref.rank = 1;
    ref.extents[0] = matrix.size();
    ref.strides[0] = matrix.innerStride();
  } else {
    constexpr bool by_rows = has_eigen_rows<Matrix>;
    ref.rank = 2;
    ref.extents[0] = matrix.rows();
    ref.extents[1] = matrix.cols();
    ref.strides[0] = by_rows ? matrix.outerStride() : matrix.innerStride();
    ref.strides[1] = by_rows ? matrix.innerStride() : matrix.outerStride();
  }
  return ref;
}

/// The matrix type over an array of `Columns` columns; dyn: known at run time only. Eigen has its own order
/// for a column.
template <class T, int Rows, int Columns>
using eigen_matrix = Eigen::Matrix<std::remove_const_t<T>, Rows, Columns,
                                   (Columns == 1 && Rows != 1) ? static_cast<int>(Eigen::ColMajor)
                                                               : static_cast<int>(Eigen::RowMajor)>;

}  // namespace detail

/// A matrix, array, vector, map, Eigen::Ref or block of Eigen. A type that is a vector has rank 1, a matrix
/// rank 2. Verbs on rows take row-major matrices only; ferry::copy takes both.
template <detail::EigenArray Matrix>
struct array_traits<Matrix> {
  /// See ferry::array_traits.
  /// @{
  static constexpr bool is_writable = static_cast<bool>(Matrix::Flags & Eigen::LvalueBit);
  using value_type = std::conditional_t<is_writable, typename Matrix::Scalar, const typename Matrix::Scalar>;
  using memory_space = pageable_space;
  static constexpr std::size_t static_width =
      Matrix::IsVectorAtCompileTime != 0 ? 1
                                         : (Matrix::ColsAtCompileTime == Eigen::Dynamic
                                                ? dyn
                                                : static_cast<std::size_t>(Matrix::ColsAtCompileTime));
  static auto ref(Matrix& array) { return detail::eigen_ref<value_type>(array.data(), array); }
  static auto ref(const Matrix& array) {
    return detail::eigen_ref<std::remove_pointer_t<decltype(array.data())>>(array.data(), array);
  }
  /// @}
};

/// Eigen fixes the layout by the type.
template <detail::EigenArray Matrix>
inline constexpr bool is_row_major_v<Matrix> = detail::has_eigen_rows<Matrix>;

/// A tensor, slice or view in host memory as a row-major Eigen::Map: rows x width, for rank 1 a column. A
/// width that the type fixes is fixed in the map, too. The memory must outlive the map.
///
/// Waits for nothing: wait for the tickets of verbs that write to the array, and before writing to the map
/// also for those that read it.
template <class Array>
  requires requires { typename std::remove_cvref_t<Array>::extents_type; }
[[nodiscard]] auto to_eigen(Array&& array) {
  using plain = std::remove_cvref_t<Array>;
  using element = std::remove_pointer_t<decltype(array.data())>;
  static_assert(
      plain::memory_space::is_host_accessible,
      "ferry: Eigen computes on the host, which can't rely on reaching device_space; bring the rows to the host with ferry::copy or gather.");
  constexpr std::size_t width = detail::static_width<typename plain::extents_type>;
  using matrix =
      detail::eigen_matrix<element, Eigen::Dynamic, width == dyn ? Eigen::Dynamic : static_cast<int>(width)>;
  using map = Eigen::Map<std::conditional_t<std::is_const_v<element>, const matrix, matrix>>;
  return map(array.data(), static_cast<Eigen::Index>(array.rows()), static_cast<Eigen::Index>(array.width()));
}

}  // namespace ferry
