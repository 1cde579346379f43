// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/runtime/detail/work_queue.hpp>
#include <ferry/runtime/detail/worker_team.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
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
  constexpr std::int64_t piece = 8192;
  const kernel_region region(label);
  const int most = std::max(1, static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency()));
  front_queue queue(count, piece);
  worker_team workers(static_cast<int>(std::min<std::int64_t>(most, (count + piece - 1) / piece)) - 1, most);
  workers.run([&](int) {
    for (std::int64_t first = 0, length = 0; queue.take(first, length);)
      for (std::int64_t i = first; i < first + length; ++i) functor(i);
  });
}

}  // namespace ferry::detail
