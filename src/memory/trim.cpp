// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/trim.hpp>

#include "registry.hpp"

#include <ferry/memory/detail/idle_memory.hpp>

namespace ferry {

std::size_t detail::trim_space(std::string_view space) {
  return memory_registry::get()->trim(in_flight::skip, space);
}

std::size_t trim() { return detail::memory_registry::get()->trim(detail::in_flight::skip); }

}  // namespace ferry
