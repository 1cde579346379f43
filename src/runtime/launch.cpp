// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/launch.hpp>

#include <ferry/memory/detail/tools.hpp>
#include <ferry/runtime/detail/require_process.hpp>

#include "../../backends/enabled.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace ferry::detail {

template <HostExecutionSpace Exec>
void launch(const Exec& exec, const std::string& label, host_loop loop) {
  if (loop.count <= 0) return;
  if (stays_in_caller(exec, loop.bytes)) {
    const tool_kernel region(exec, label);
    return loop(0);
  }
  require_own_kokkos(exec, label);
  loop.runs = std::min(loop.count, loop.thread_runs * concurrency_of(exec));
  using range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(label, host_range<range>(exec, loop.runs), loop);
  execution_backend<Exec>::end_launch(exec, label);
}

#define FERRY_LAUNCH_ON(EXEC) template void launch<EXEC>(const EXEC&, const std::string&, host_loop);
FERRY_FOR_HOST_EXECUTION_SPACES(FERRY_LAUNCH_ON)
#undef FERRY_LAUNCH_ON

}  // namespace ferry::detail
