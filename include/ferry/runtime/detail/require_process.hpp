// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/require_kokkos.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <string_view>

namespace ferry::detail {

/// Every call that runs kernels comes here before it takes a lock or enqueues anything. Throws
/// invalid_argument in a child that was forked after Kokkos::initialize, unless `exec` is a host instance of
/// one thread: the calling thread.
template <class Exec>
void require_own_kokkos(const Exec& exec, std::string_view call) {
  require_kokkos(call);
  if (!process_identity::get().has_lost_kokkos()) return;
  if constexpr (HostExecutionSpace<Exec>)
    if (concurrency_of(exec) == 1) return;
  refuse_lost_kokkos(call);
}

}  // namespace ferry::detail
