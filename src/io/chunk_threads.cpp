// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/chunk_threads.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <thread>

namespace ferry::detail {

int chunk_threads() {
  constexpr int most = 16;
  const int threads = Kokkos::is_initialized()
                          ? static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency())
                          : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(threads, 1, most);
}

}  // namespace ferry::detail
