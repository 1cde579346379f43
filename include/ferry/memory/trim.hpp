// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/detail/registry.hpp>

#include <cstddef>

namespace ferry {

/// Returns idle blocks of the pools of one space, on all devices, to the system. The result is their size in
/// bytes. Never waits: blocks in use by work in flight are kept.
template <MemorySpace Space>
std::size_t trim() {
  return detail::memory_registry::get()->trim(detail::in_flight::skip, Space::name);
}

/// As above, for all memory spaces.
inline std::size_t trim() { return detail::memory_registry::get()->trim(detail::in_flight::skip); }

}  // namespace ferry
