// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include <Kokkos_Core.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

/// Bringing values into tensors of any space and back without the verbs under test: by Kokkos::deep_copy.
namespace ferry_test {

using exec_space = Kokkos::DefaultExecutionSpace;

template <class T>
using host_view =
    Kokkos::View<T*, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// Copy bytes from memory of the host to memory of Space, and back. For ferry's spaces arrays.cpp has them:
/// copies of Views take long to compile.
/// @{
template <class Space>
void copy_to_space(void* target, const void* source, std::size_t bytes) {
  const Kokkos::View<std::byte*, Kokkos::LayoutRight, ferry::detail::kokkos_space_t<Space>,
                     Kokkos::MemoryTraits<Kokkos::Unmanaged>>
      device_view(static_cast<std::byte*>(target), bytes);
  Kokkos::deep_copy(device_view, host_view<const std::byte>(static_cast<const std::byte*>(source), bytes));
  Kokkos::fence();
}
template <class Space>
void copy_to_host(void* target, const void* source, std::size_t bytes) {
  const Kokkos::View<const std::byte*, Kokkos::LayoutRight, ferry::detail::kokkos_space_t<Space>,
                     Kokkos::MemoryTraits<Kokkos::Unmanaged>>
      device_view(static_cast<const std::byte*>(source), bytes);
  Kokkos::fence();
  Kokkos::deep_copy(host_view<std::byte>(static_cast<std::byte*>(target), bytes), device_view);
}
extern template void copy_to_space<ferry::device_space>(void*, const void*, std::size_t);
extern template void copy_to_space<ferry::pinned_space>(void*, const void*, std::size_t);
extern template void copy_to_space<ferry::mapped_space>(void*, const void*, std::size_t);
extern template void copy_to_space<ferry::pageable_space>(void*, const void*, std::size_t);
extern template void copy_to_host<ferry::device_space>(void*, const void*, std::size_t);
extern template void copy_to_host<ferry::pinned_space>(void*, const void*, std::size_t);
extern template void copy_to_host<ferry::mapped_space>(void*, const void*, std::size_t);
extern template void copy_to_host<ferry::pageable_space>(void*, const void*, std::size_t);
/// @}

template <class T, class Space, class Extents>
void put(ferry::tensor<T, Space, Extents>& target, const std::vector<T>& values) {
  REQUIRE(values.size() == target.size());
  if (!values.empty()) copy_to_space<Space>(target.data(), values.data(), values.size() * sizeof(T));
}

template <class T, class Space, class Extents>
std::vector<T> take(const ferry::tensor<T, Space, Extents>& source) {
  std::vector<T> values(source.size());
  if (!values.empty()) copy_to_host<Space>(values.data(), source.data(), values.size() * sizeof(T));
  return values;
}

/// A tensor with the given contents.
template <class Space, class T>
ferry::tensor<T, Space> make(const char* label, std::size_t rows, std::size_t columns,
                             const std::vector<T>& values) {
  ferry::tensor<T, Space> array(label, rows, columns);
  put(array, values);
  return array;
}

template <class Space, class T>
ferry::tensor<T, Space> make(const char* label, const std::vector<T>& values) {
  ferry::tensor<T, Space> array(label, values.size());
  put(array, values);
  return array;
}

}  // namespace ferry_test
