// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace ferry {

/// The type of an execution space *instance*, which is the first argument of every verb.
template <class T>
concept ExecutionSpace = Kokkos::is_execution_space<std::remove_cvref_t<T>>::value;

/// An execution space whose kernels run on the host's cores and dereference host memory.
template <class T>
concept HostExecutionSpace = ExecutionSpace<T> &&
    static_cast<bool>(Kokkos::SpaceAccessibility<std::remove_cvref_t<T>, Kokkos::HostSpace>::accessible);

namespace detail {

/// Threads of a host instance. The instance is passed because Kokkos 4 allocates one for the default
/// argument.
template <HostExecutionSpace Exec>
std::int64_t concurrency_of(const Exec& exec) {
  if constexpr (requires { exec.concurrency(exec); })
    return std::max(1, exec.concurrency(exec));
  else
    return std::max(1, exec.concurrency());
}

/// The range [0, count) with the chunk size that Kokkos would choose. Kokkos allocates when it computes it.
template <class Range, HostExecutionSpace Exec>
Range host_range(const Exec& exec, std::int64_t count) {
  const std::int64_t threads = concurrency_of(exec);
  const auto chunk_for = [&](std::int64_t chunks) {
    const std::int64_t shares = threads * chunks;
    return static_cast<std::int64_t>(
        std::bit_ceil(static_cast<std::uint64_t>((count + shares - 1) / shares)));
  };
  std::int64_t chunk = chunk_for(100);
  if (chunk < 128) chunk = std::min<std::int64_t>(128, chunk_for(40));
  return Range(exec, std::int64_t{0}, count,
               Kokkos::ChunkSize(static_cast<int>(std::min<std::int64_t>(chunk, std::int64_t{1} << 30))));
}

}  // namespace detail

}  // namespace ferry
