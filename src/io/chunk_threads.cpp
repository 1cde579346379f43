// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/chunk_threads.hpp>

#include "../runtime/processors.hpp"
#include "../runtime/signals_elsewhere.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace ferry::detail {

int chunk_threads() {
  constexpr int most = 16;
  const int all = Kokkos::is_initialized()
                      ? static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency())
                      : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(all, 1, most);
}

void share_chunks(std::size_t count, int threads, function_ref<void(chunk_counter&)> worker) {
  chunk_counter chunks(count);
  std::mutex guard;
  std::exception_ptr first_error;
  const auto share = [&] {
    try {
      worker(chunks);
    } catch (...) {
      chunks.stop();
      const std::lock_guard lock(guard);
      if (first_error == nullptr) first_error = std::current_exception();
    }
  };
  const auto helpers = std::min<std::size_t>(static_cast<std::size_t>(std::max(1, threads)), count);
  processor_set where;  // outlives the threads, which read it
  {
    std::vector<std::jthread> team;
    if (helpers > 1) {
      const signals_elsewhere quiet;
      where = processor_set::of_process();
      try {
        team.reserve(helpers - 1);
        while (team.size() + 1 < helpers)
          team.emplace_back([&]() noexcept {
            where.take();
            share();
          });
      } catch (const std::exception&) {  // system_error, bad_alloc: fewer threads, then
      }
    }
    share();
  }
  if (first_error != nullptr) std::rethrow_exception(std::exchange(first_error, nullptr));
}

}  // namespace ferry::detail
