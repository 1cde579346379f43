// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/device.hpp>

#include <cstddef>
#include <string_view>

namespace ferry {

namespace detail {

void set_budget_of(std::string_view account, std::size_t bytes);

}  // namespace detail

/// Limits the bytes that ferry holds in one memory space (space_statistics::current), for device_space those
/// on the device that Kokkos uses; 0, the default, means no limit. An allocation that would exceed the budget
/// first returns idle blocks of the space's pools to the system. Where only blocks in use by work in flight
/// are left, it waits for that work. Then it throws budget_exceeded and changes nothing else. A budget below
/// the current size forbids further allocations and frees nothing (see trim). The limit holds for all threads
/// together, until Kokkos::finalize.
template <MemorySpace Space>
void set_memory_budget(std::size_t bytes) {
  detail::set_budget_of(Space::name, bytes);
}

/// As above, for device_space on one device. The other devices keep their budgets. For the other spaces,
/// which all devices share, the device makes no difference.
template <MemorySpace Space>
void set_memory_budget(std::size_t bytes, device location) {
  detail::set_budget_of(detail::account_of<Space>(location.id), bytes);
}

}  // namespace ferry
