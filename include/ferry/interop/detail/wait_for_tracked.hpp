// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <memory>
#include <string>

namespace ferry::detail {

/// Blocks until the work of verbs that conflicts with a foreign reader, or with a foreign writer, has ended.
inline void wait_for_tracked(const std::shared_ptr<access_tracker>& accesses, bool foreign_writes) {
  if (accesses == nullptr) return;
  if (foreign_writes)
    accesses->wait_for_all();
  else
    accesses->wait_for_writes();
}

/// Does it for foreign work that will be enqueued on `exec`: a device waits, not the calling thread.
template <class Exec>
void wait_for_tracked(const Exec& exec, const std::shared_ptr<access_tracker>& accesses, bool foreign_writes,
                      const char* verb) {
  using backend = execution_backend<Exec>;
  if (accesses == nullptr) return;
  if constexpr (is_host_exec<Exec>) {
    wait_for_tracked(accesses, foreign_writes);
  } else {
    if (backend::capturing(exec))
      throw invalid_argument(
          joined("ferry::", verb,
                 ": the instance is being captured into a graph, whose order is its own; hand the "
                 "array over before the capture"));
    const auto id = backend::id_of(exec);
    for (const auto& access : foreign_writes ? accesses->before_write(id) : accesses->before_read(id))
      backend::wait_for(exec, *access);
  }
}

}  // namespace ferry::detail
