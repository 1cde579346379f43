// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

namespace ferry::detail {

/// The instance for the host part of a verb: `exec` if it is a host instance, else the default host
/// instance.
template <class Exec>
auto host_side(const Exec& exec) {
  if constexpr (is_host_exec<Exec>)
    return exec;
  else
    return Kokkos::DefaultHostExecutionSpace{};
}

}  // namespace ferry::detail
