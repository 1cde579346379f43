#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/detail/registry.hpp>

#include <cstddef>

namespace ferry {

/// Gives the pools' idle blocks of one space back to the system and returns how many bytes that were. Never
/// waits: blocks that work in flight still uses stay.
template <MemorySpace Space>
std::size_t trim() {
  return detail::memory_registry::get()->of<Space>().trim(~std::size_t{0}, detail::in_flight::skip);
}

/// The same for all spaces.
inline std::size_t trim() { return detail::memory_registry::get()->trim(detail::in_flight::skip); }

}  // namespace ferry
