#pragma once

#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

namespace ferry::detail {

/// Where the host's share of a verb runs: on the given instance if that is the host's, else on the default
/// one.
template <class Exec>
auto host_side(const Exec& exec) {
  if constexpr (is_host_exec<Exec>)
    return exec;
  else
    return Kokkos::DefaultHostExecutionSpace{};
}

}  // namespace ferry::detail
