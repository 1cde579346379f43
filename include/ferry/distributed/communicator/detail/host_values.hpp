// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace ferry::detail {

/// Host memory that kernels of Exec reach at full speed.
template <class Exec>
using wire_space = std::conditional_t<is_host_exec<Exec>, pageable_space, pinned_space>;

/// A contiguous array of rank 1 for host code: its own memory, or a copy in `room`. Waits for the work in
/// flight that writes it, that of `exec` included.
template <class Exec, class T, class Space>
const std::remove_const_t<T>* host_values(const Exec& exec, const array_ref<T, Space>& array,
                                          std::vector<std::remove_const_t<T>>& room) {
  static const std::string label = "ferry::distributed::host_values";
  if (array.accesses != nullptr) array.accesses->wait_for_all();
  if constexpr (Space::is_host_accessible) {
    execution_backend<Exec>::fence(exec, label);
    return array.data;
  } else {
    room.resize(static_cast<std::size_t>(array.rows()));
    if (!room.empty()) copy(exec, array, room).join();
    return room.data();
  }
}

}  // namespace ferry::detail
