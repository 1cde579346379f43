// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/stream_rows.hpp>

#include <ferry/runtime/detail/worker_team.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace ferry::detail {

void for_each_piece(std::int64_t all, std::int64_t piece,
                    function_ref<void(std::int64_t, std::int64_t)> work) {
  const std::int64_t pieces = (all + piece - 1) / piece;
  const int most = std::max(1, static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency()));
  std::atomic<std::int64_t> next{0};
  worker_team workers(static_cast<int>(std::min<std::int64_t>(most, pieces)) - 1, most);
  workers.run([&](int) {
    for (std::int64_t at = next++; at < pieces; at = next++) {
      try {
        work(at * piece, std::min(piece, all - at * piece));
      } catch (...) {
        next = pieces;
        throw;
      }
    }
  });
}

}  // namespace ferry::detail
