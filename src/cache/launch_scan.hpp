// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/require_process.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>

namespace ferry::detail {

/// Enqueues the scan over [0, count).
template <class Exec, class Functor>
void launch_scan(const Exec& exec, const std::string& label, std::int64_t count, const Functor& functor) {
  if constexpr (is_host_exec<Exec>) require_own_kokkos(exec, label);
  using range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  [[maybe_unused]] const auto launching = execution_backend<Exec>::template lock_launch<Functor>();
  Kokkos::parallel_scan(label, range(exec, 0, count), functor);
}

}  // namespace ferry::detail
