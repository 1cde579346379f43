#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/detail/registry.hpp>

#include <cstddef>

namespace ferry {

/// The most bytes that ferry may hold in one memory space (space_statistics::current); 0 for no limit, which is
/// the default. An allocation that would pass it first gives idle blocks of the space's pools back to the
/// system, waiting for work that still uses them where no other is left, then throws budget_exceeded and
/// changes nothing else. A budget below what is held already forbids further allocations and frees nothing
/// (see trim). Threads that allocate at the same time stay inside of it together. Holds until
/// Kokkos::finalize.
template <MemorySpace Space>
void set_memory_budget(std::size_t bytes) {
  detail::memory_registry::get()->of<Space>().set_budget(bytes);
}

}  // namespace ferry
