// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/kernel_route.hpp>

#include <Kokkos_Core.hpp>

/// For the sources of ferry_tests_by_kernels, before anything else of them: a host's batches are routed as a device's are.
template <>
inline constexpr bool ferry::detail::routes_by_kernels<Kokkos::DefaultHostExecutionSpace> = true;
