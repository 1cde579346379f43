// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>

#include <cstddef>
#include <string_view>

namespace ferry {

namespace detail {

std::size_t trim_space(std::string_view space);

}  // namespace detail

/// Returns idle blocks of the pools of one space, on all devices, to the system: scratch memory, and memory
/// of tensors that have ended. The result is their size in
/// bytes. Never waits: blocks in use by work in flight are kept.
template <MemorySpace Space>
std::size_t trim() {
  return detail::trim_space(Space::name);
}

/// As above, for all memory spaces.
std::size_t trim();

}  // namespace ferry
