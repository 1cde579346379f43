// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/runtime/detail/parallel.hpp>

#include <cstdint>
#include <string>

namespace ferry::detail {

/// Calls functor(i) for each i in [0, count) by the calling thread and the worker pool. Returns when all
/// calls have ended. For host work next to a staging ring: threads of a host execution space may spin for
/// milliseconds after a kernel, as OpenMP's do by default, and take the processors from the workers of the
/// ring. Reported to Kokkos Tools as a kernel of the host.
template <class Functor>
void run_on_workers(const std::string& label, std::int64_t count, const Functor& functor) {
  if (count <= 0) return;
  const tool_kernel region(label);
  parallel(count, 8192, [&functor](std::int64_t first, std::int64_t length) {
    for (std::int64_t i = first; i < first + length; ++i) functor(i);
  });
}

}  // namespace ferry::detail
