// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/kit.hpp"

#include <cstddef>
#include <type_traits>
#include <vector>

/// Arrays of ranks on devices.
namespace ferry_test {

#ifdef KOKKOS_ENABLE_THREADS
inline constexpr bool instances_work = false;
#else
inline constexpr bool instances_work = true;
#endif

/// The elements of an array, or of a sharded table by a thread for the group.
template <class Array>
auto contents(const Kokkos::DefaultExecutionSpace& exec, const Array& array) {
  using value = std::remove_const_t<typename Array::value_type>;
  ferry::tensor<value, host> read("read", array.rows(), array.width());
  ferry::copy(exec, array, read).wait();
  return std::vector<value>(read.data(), read.data() + read.size());
}

/// An array of rank 1, or of rows, with these values on a device.
/// @{
template <class T>
auto on_device(const Kokkos::DefaultExecutionSpace& exec, ferry::device home, const std::vector<T>& values) {
  ferry::tensor<T, ferry::device_space> array("list", home, values.size());
  if (!values.empty()) ferry::copy(exec, values, array).wait();
  return array;
}
template <class T>
auto on_device(const Kokkos::DefaultExecutionSpace& exec, ferry::device home, const std::vector<T>& values,
               std::size_t columns) {
  ferry::tensor<T, ferry::device_space> array("rows", home, values.size() / columns, columns);
  const ferry::tensor<T, host> host_rows = tensor_of(values, columns);
  ferry::copy(exec, host_rows, array).wait();
  return array;
}
/// @}

}  // namespace ferry_test
