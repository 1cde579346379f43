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

template <class T, class Space, class Extents>
void put(ferry::tensor<T, Space, Extents>& target, const std::vector<T>& values) {
  REQUIRE(values.size() == target.size());
  if (values.empty()) return;
  Kokkos::View<T*, Kokkos::LayoutRight, ferry::detail::kokkos_space_t<Space>,
               Kokkos::MemoryTraits<Kokkos::Unmanaged>>
      device_view(target.data(), target.size());
  Kokkos::deep_copy(device_view, host_view<const T>(values.data(), values.size()));
  Kokkos::fence();
}

template <class T, class Space, class Extents>
std::vector<T> take(const ferry::tensor<T, Space, Extents>& source) {
  std::vector<T> values(source.size());
  if (values.empty()) return values;
  Kokkos::View<const T*, Kokkos::LayoutRight, ferry::detail::kokkos_space_t<Space>,
               Kokkos::MemoryTraits<Kokkos::Unmanaged>>
      device_view(source.data(), source.size());
  Kokkos::fence();
  Kokkos::deep_copy(host_view<T>(values.data(), values.size()), device_view);
  return values;
}

/// A tensor with the given contents.
template <class Space, class T>
ferry::tensor<T, Space> make(const char* label, std::size_t rows, std::size_t width,
                             const std::vector<T>& values) {
  ferry::tensor<T, Space> array(label, rows, width);
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
