#pragma once

#include <Kokkos_Core.hpp>

#include <type_traits>

namespace ferry {

/// An execution space *instance* type: the first argument of every verb.
template <class T>
concept ExecutionSpace = Kokkos::is_execution_space<std::remove_cvref_t<T>>::value;

/// An execution space whose kernels run on the host's cores and dereference the host's memory.
template <class T>
concept HostExecutionSpace = ExecutionSpace<T> &&
    static_cast<bool>(Kokkos::SpaceAccessibility<std::remove_cvref_t<T>, Kokkos::HostSpace>::accessible);

}  // namespace ferry
