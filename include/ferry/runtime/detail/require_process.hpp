// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/joined.hpp>
#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/require_kokkos.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <string_view>

namespace ferry::detail {

template <class...>
[[noreturn, gnu::cold]] void refuse_lost_kokkos(std::string_view call) {
  constexpr std::string_view prefix = "ferry::";
  if (call.substr(0, prefix.size()) == prefix) call.remove_prefix(prefix.size());
  throw invalid_argument(joined(
      {prefix, call,
       ": this process was forked after Kokkos::initialize, so the threads and devices of Kokkos stay with the parent, and its kernels would wait for them for ever; fork before Kokkos::initialize, or start the process by exec (multiprocessing: 'spawn')"}));
}

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
