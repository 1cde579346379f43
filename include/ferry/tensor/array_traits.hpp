// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <Kokkos_Core.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry {

/// How a type becomes an argument of the verbs. Specialise it for your own arrays.
///
///   value_type    element type, const if the array is
///   memory_space  one of ferry's spaces
///   static_width  elements of a row if the type fixes them, else ferry::dyn
///   ref(array)    the array_ref that describes it; takes a const array too, then with const elements
///
/// An array_ref needs data, rank, extents, strides in elements (make_dense() sets those of a row-major array)
/// and a label for error messages. The row stride may exceed the width. A span, a vector or a std::array is
/// an array of rank 1, with rows of one element. For a batch of wider rows in a vector, see adopt.
template <class Array>
struct array_traits;

/// A type that verbs take as an array: one with ferry::array_traits. These are tensors, slices, views of
/// ferry, Kokkos Views, spans, vectors, std::arrays, built-in arrays, and types that specialise array_traits.
template <class Array>
concept ArrayLike = requires(Array& array) {
  typename array_traits<std::remove_cv_t<Array>>::value_type;
  typename array_traits<std::remove_cv_t<Array>>::memory_space;
  { array_traits<std::remove_cv_t<Array>>::static_width } -> std::convertible_to<std::size_t>;
  array_traits<std::remove_cv_t<Array>>::ref(array);
};

/// True if Array is a flat sequence of elements without extents: a span, vector, std::array or built-in
/// array.
template <class Array>
inline constexpr bool is_sequence_v = false;
template <class T, std::size_t Size>
inline constexpr bool is_sequence_v<std::span<T, Size>> = true;
template <class T, class Allocator>
inline constexpr bool is_sequence_v<std::vector<T, Allocator>> = true;
template <class T, std::size_t Size>
inline constexpr bool is_sequence_v<std::array<T, Size>> = true;
/// A built-in array is a sequence.
template <class T, std::size_t Size>
inline constexpr bool is_sequence_v<T[Size]> = true;

namespace detail {

template <class T, class Space, class Extents>
array_ref<T, Space> ref_of_tensor(T* data, const tensor<std::remove_const_t<T>, Space, Extents>& array) {
  array_ref<T, Space> ref{{}, data};
  const auto sizes = array.sizes();
  ref.describe_dense(sizes.size(), sizes.data());
  ref.label = array.shared_label();
  ref.accesses = array.accesses();
  return ref;
}

template <class T, class Space, class Observed>
array_ref<T, Space> dense_ref(T* data, const Observed& observed) {
  array_ref<T, Space> ref{{}, data};
  std::size_t sizes[max_rank];
  for (std::size_t i = 0; i < observed.rank(); ++i) sizes[i] = observed.extent(i);
  ref.describe_dense(observed.rank(), sizes);
  if constexpr (std::is_convertible_v<decltype(observed.label()), std::string_view>)
    ref.label = std::string_view(observed.label()).substr(0, array_label::max_copied);  // takes no memory
  else
    ref.label = observed.label();
  return ref;
}

/// The ref of an array whose extents and strides are its members. A single element, of rank 0, is an array of
/// one.
template <class T, class Space, std::size_t Rank, class Strided>
array_ref<T, Space> strided_ref(T* data, const Strided& array, const array_label& label) {
  array_ref<T, Space> ref;
  ref.data = data;
  ref.label = label;
  ref.rank = Rank == 0 ? 1 : Rank;
  if constexpr (Rank == 0) {
    ref.extents[0] = ref.strides[0] = 1;
  } else {
    for (std::size_t i = 0; i < Rank; ++i) {
      ref.extents[i] = static_cast<std::int64_t>(array.extent(i));
      ref.strides[i] = static_cast<std::int64_t>(array.stride(i));
    }
  }
  return ref;
}

template <class Array>
using sequence_pointer = decltype(std::data(std::declval<Array&>()));

template <class Array>
concept is_readable_sequence = is_sequence_v<Array> && std::is_pointer_v<sequence_pointer<Array>> &&
    !std::is_array_v<std::remove_pointer_t<sequence_pointer<Array>>>;

template <class Array>
inline constexpr const char* sequence_label = "array";
template <class T, std::size_t Size>
inline constexpr const char* sequence_label<std::span<T, Size>> = "span";
template <class T, class Allocator>
inline constexpr const char* sequence_label<std::vector<T, Allocator>> = "vector";

template <class Array>
auto sequence_ref(Array& array) {
  array_ref<std::remove_pointer_t<sequence_pointer<Array>>, pageable_space> ref;
  ref.data = std::data(array);
  ref.rank = 1;
  ref.extents[0] = static_cast<std::int64_t>(std::size(array));
  ref.make_dense();
  ref.label = sequence_label<std::remove_const_t<Array>>;
  return ref;
}

/// ferry's memory space for one of Kokkos. On a backend without a device all of Kokkos' spaces are HostSpace,
/// which is pageable_space.
template <class KokkosSpace>
consteval auto space_of() {
  if constexpr (std::is_same_v<KokkosSpace, Kokkos::HostSpace>)
    return pageable_space{};
  else if constexpr (std::is_same_v<KokkosSpace, Kokkos::SharedHostPinnedSpace>)
    return pinned_space{};
  else if constexpr (std::is_same_v<KokkosSpace, Kokkos::SharedSpace>)
    return mapped_space{};
  else
    return device_space{};
}

}  // namespace detail

/// A tensor.
template <class T, class Space, class Extents>
struct array_traits<tensor<T, Space, Extents>> {
  /// See ferry::array_traits.
  /// @{
  using value_type = T;
  using memory_space = Space;
  static constexpr std::size_t static_width = detail::static_width<Extents>;
  static detail::array_ref<T, Space> ref(tensor<T, Space, Extents>& array) {
    return detail::ref_of_tensor<T, Space>(array.data(), array);
  }
  static detail::array_ref<const T, Space> ref(const tensor<T, Space, Extents>& array) {
    return detail::ref_of_tensor<const T, Space>(array.data(), array);
  }
  /// @}
};

/// A view of a tensor. Reads and writes in flight are not known to it.
template <class T, class Space, class Extents>
struct array_traits<tensor_view<T, Space, Extents>> {
  /// See ferry::array_traits.
  /// @{
  using value_type = T;
  using memory_space = Space;
  static constexpr std::size_t static_width = detail::static_width<Extents>;
  static detail::array_ref<T, Space> ref(const tensor_view<T, Space, Extents>& array) {
    return detail::dense_ref<T, Space>(array.data(), array);
  }
  /// @}
};

/// A Kokkos::View of any layout. The strides are kept: verbs on rows need dense rows, copy takes any strides.
template <class DataType, class... Properties>
struct array_traits<Kokkos::View<DataType, Properties...>> {
  /// See ferry::array_traits.
  /// @{
  using view_type = Kokkos::View<DataType, Properties...>;
  using value_type = typename view_type::value_type;
  using memory_space = decltype(detail::space_of<typename view_type::memory_space>());
  static constexpr bool is_row_major =
      view_type::rank() <= 1 || std::is_same_v<typename view_type::array_layout, Kokkos::LayoutRight>;
  static constexpr std::size_t static_width = dyn;
  static detail::array_ref<value_type, memory_space> ref(const view_type& array) {
    return detail::strided_ref<value_type, memory_space, view_type::rank()>(array.data(), array,
                                                                            array.label());
  }
  /// @}
};

/// A flat sequence of host memory, of rank 1: a span, vector, std::array or built-in array. Not a vector of
/// bool.
template <class Array>
  requires detail::is_readable_sequence<Array>
struct array_traits<Array> {
  /// See ferry::array_traits.
  /// @{
  using value_type = std::remove_pointer_t<detail::sequence_pointer<Array>>;
  using memory_space = pageable_space;
  static constexpr std::size_t static_width = 1;
  static auto ref(Array& array) { return detail::sequence_ref(array); }
  static auto ref(const Array& array) { return detail::sequence_ref(array); }
  /// @}
};

/// An array_ref describes itself, with the record of reads and writes in flight. Verbs that call other verbs
/// pass parts of their arguments in this form.
template <class T, class Space>
struct array_traits<detail::array_ref<T, Space>> {
  /// See ferry::array_traits.
  /// @{
  using value_type = T;
  using memory_space = Space;
  static constexpr std::size_t static_width = dyn;
  static detail::array_ref<T, Space> ref(const detail::array_ref<T, Space>& array) { return array; }
  /// @}
};

/// The array_ref of any ArrayLike.
template <ArrayLike Array>
auto make_ref(Array& array) {
  return array_traits<std::remove_cv_t<Array>>::ref(array);
}

/// False for arrays whose type fixes a layout that is not row-major.
template <class Array>
inline constexpr bool is_row_major_v = true;
template <class DataType, class... Properties>
inline constexpr bool is_row_major_v<Kokkos::View<DataType, Properties...>> =
    array_traits<Kokkos::View<DataType, Properties...>>::is_row_major;

namespace detail {

/// True if the elements die with the object. Views, spans and slices refer to elements of others.
template <class Array>
inline constexpr bool owns_elements = is_sequence_v<Array>;
template <class T, std::size_t Size>
inline constexpr bool owns_elements<std::span<T, Size>> = false;
template <class T, class Space, class Extents>
inline constexpr bool owns_elements<tensor<T, Space, Extents>> = true;

/// True if the elements may move to other memory while the object stays: not those of arrays and of tensors.
template <class Array>
inline constexpr bool may_be_resized = false;
template <class T, class Allocator>
inline constexpr bool may_be_resized<std::vector<T, Allocator>> = true;

/// For the parameter of an Array&&: whether the argument's elements die with the call's statement.
template <class Array>
inline constexpr bool owns_elements_briefly =
    !std::is_lvalue_reference_v<Array> && owns_elements<std::remove_cvref_t<Array>>;

/// Refuses a temporary if the caller's object outlives the statement and refers to the elements.
template <class Array>
consteval void require_lasting() {
  static_assert(
      !owns_elements_briefly<Array>,
      "ferry: a reference to the array is kept, so it can't be a temporary tensor, vector or array; keep it in a variable.");
}

}  // namespace detail

}  // namespace ferry
