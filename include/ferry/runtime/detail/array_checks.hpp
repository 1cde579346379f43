// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/arguments.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <string_view>
#include <type_traits>
#include <utility>

/// Requirements of all verbs on execution spaces and arrays. static_asserts with sentences check the types,
/// because nvcc does not explain concepts.
namespace ferry::detail {

template <class Exec>
consteval void require_execution_space() {
  require_role<roles::execution_space.kinds, Exec>();
}

template <class Array>
consteval void require_rows() {
  require_role<roles::array.kinds, Array>();
  static_assert(
      is_row_major_v<std::remove_cvref_t<Array>>,
      "ferry: verbs that work on rows take row-major arrays only; give the Kokkos::View LayoutRight, the Eigen matrix Eigen::RowMajor or the mdspan layout_right, or use ferry::copy, which takes every layout; gather into an array of yours, scatter and scatter_add take Kokkos::LayoutLeft, too, if the type fixes at most 8 columns, as View<double*[3]> does.");
}

template <class Array>
consteval void require_mutable() {
  static_assert(!std::is_const_v<std::remove_pointer_t<decltype(make_ref(std::declval<Array&>()).data)>>,
                "ferry: the verb writes to this array, but its elements are const.");
}

/// For the parameter of an Array&& that a verb writes to.
template <class Array>
consteval void require_output() {
  require_mutable<Array>();
  static_assert(
      !owns_elements_briefly<Array>,
      "ferry: the verb writes to a temporary tensor, vector or array, whose memory is freed while the work may be in flight; keep it in a variable.");
}

template <class Exec, class Array>
consteval void require_reach() {
  static_assert(
      may_dereference<std::remove_cvref_t<Exec>, typename traits_of<Array>::memory_space>(),
      "ferry: a host execution space can't dereference rows in device_space; pass an instance of the device's execution space.");
}

[[noreturn]] void refuse_array_device(std::string_view verb, const array_note& array, int device,
                                      int instance);

/// Throws invalid_argument if the array is known to lie on another device than the instance.
template <class Exec, class T, class Space>
void require_array_device(std::string_view verb, const Exec& exec, const array_ref<T, Space>& array) {
  if constexpr (!is_host_exec<Exec> && !Space::is_host_accessible) {
    const int device = array.device();
    if (device >= 0 && device != execution_backend<Exec>::device_of(exec)) [[unlikely]]
      refuse_array_device(verb, array.note(), device, execution_backend<Exec>::device_of(exec));
  }
}

/// `empty`: an array without extents and memory, else one of strided rows.
[[noreturn]] void refuse_rows(const char* verb, const array_note& array, bool empty);

/// Throws invalid_argument for an array without extents, and unless the elements of each row are adjacent.
void require_dense_rows(const char* verb, const untyped_array& array);

}  // namespace ferry::detail
