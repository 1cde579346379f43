// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/tensor/extents.hpp>

#include <cassert>
#include <type_traits>

namespace ferry::detail {

/// Element (i, j, ...) for host code. Does not compile for memory that host code may not dereference.
template <MemorySpace Space, class T, class Extents, class... Indices>
T& host_element(T* data, [[maybe_unused]] const shape<Extents>& extents, Indices... indices) {
  static_assert(
      Space::is_host_accessible,
      "ferry: host code can't rely on reaching elements in device_space; bring them to the host with ferry::copy, or read them in a kernel through tensor::view().");
  static_assert((std::is_convertible_v<Indices, std::size_t> && ...),
                "ferry: an element is named by integers, one for each extent.");
  assert((extents.holds(indices...)) && "ferry: one index for each extent, each inside of it");
  return data[extents.offset(indices...)];
}

}  // namespace ferry::detail
