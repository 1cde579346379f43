// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Thrust's device vectors as arguments of verbs, and tensors as Thrust's pointers. Includes nothing of
/// Thrust: its types are recognised by their members. Opt-in: include it next to ferry.hpp.

#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace ferry {

namespace detail {

/// A pointer to memory of the device as a type of its own, such as thrust::device_ptr<T>.
template <class Pointer>
concept TaggedPointer = requires(const Pointer& pointer) {
  typename Pointer::raw_pointer;
  { pointer.get() } -> std::convertible_to<typename Pointer::raw_pointer>;
}
&&std::is_pointer_v<typename Pointer::raw_pointer>;

/// A vector with such pointers, such as thrust::device_vector<T>.
template <class Vector>
concept TaggedVector = TaggedPointer<typename Vector::pointer> && requires(Vector& vector) {
  { vector.data() } -> TaggedPointer;
  { vector.size() } -> std::convertible_to<std::size_t>;
};

template <class T>
array_ref<T, device_space> device_sequence_ref(T* data, std::size_t size) {
  array_ref<T, device_space> ref;
  ref.data = data;
  ref.describe_dense(1, &size);
  ref.label = "device_vector";
  return ref;
}

}  // namespace detail

/// A vector in device memory, of rank 1: indices, or rows of one element. For wider rows give
/// ferry::thrust_view(vector.data(), rows, width).
template <detail::TaggedVector Vector>
struct array_traits<Vector> {
  /// See ferry::array_traits.
  /// @{
  using value_type = typename Vector::value_type;
  using memory_space = device_space;
  static constexpr std::size_t static_width = 1;
  static auto ref(Vector& array) { return detail::device_sequence_ref(array.data().get(), array.size()); }
  static auto ref(const Vector& array) {
    return detail::device_sequence_ref<const value_type>(array.data().get(), array.size());
  }
  /// @}
};

/// It has no extents of its own.
template <detail::TaggedVector Vector>
inline constexpr bool is_sequence_v<Vector> = true;

/// A view of device memory from Thrust's pointer to it; the sizes are the extents, rows first. Throws
/// invalid_argument for a negative one.
template <detail::TaggedPointer Pointer, std::integral... Sizes>
[[nodiscard]] auto thrust_view(const Pointer& pointer, Sizes... sizes) {
  return tensor_view<std::remove_pointer_t<typename Pointer::raw_pointer>, device_space>(pointer.get(),
                                                                                         sizes...);
}

/// Thrust's pointer to the first element of a tensor: to_thrust<thrust::device_ptr<float>>(table), with
/// const float for a const tensor. Memory of device_space, pinned_space and mapped_space, which Thrust's
/// kernels reach. Waits for nothing: order Thrust's stream by ferry::after.
template <detail::TaggedPointer Pointer, class Array>
  requires requires { typename Array::extents_type; }
[[nodiscard]] Pointer to_thrust(Array& array) {
  static_assert(Array::memory_space::is_device_mapped,
                "ferry: Thrust's kernels don't reach pageable_space; copy the tensor into another space.");
  return Pointer(array.data());
}

}  // namespace ferry
