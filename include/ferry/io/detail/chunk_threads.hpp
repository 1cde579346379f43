// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/dynamic_array.hpp>
#include <ferry/memory/detail/joined_thread.hpp>
#include <ferry/runtime/detail/processors.hpp>
#include <ferry/runtime/detail/worker_thread.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <utility>

namespace ferry::detail {

/// Number of threads for the chunks of a checkpoint.
template <class...>
int chunk_threads() {
  constexpr int most = 16;
  const int all = Kokkos::is_initialized()
                      ? static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency())
                      : static_cast<int>(processors_online());
  return std::clamp(all, 1, most);
}

/// Calls work(i) for each i in [0, count), by the calling thread and threads that end with the call. They are
/// not those of the worker pool: a save in the background may outlive Kokkos. After an error no further i is
/// started; the first error is rethrown.
template <class Work>
void for_each_chunk(std::size_t count, int threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::mutex guard;
  std::exception_ptr first_error;
  const auto share = [&] {
    try {
      auto one = work();
      for (std::size_t i = next++; i < count; i = next++) one(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(guard);
      if (first_error == nullptr) first_error = std::current_exception();
    }
  };
  const auto helpers = std::min<std::size_t>(static_cast<std::size_t>(std::max(1, threads)), count);
  processor_set where;  // outlives the threads, which read it
  const auto help = [&]() noexcept {
    where.take();
    share();
  };
  dynamic_array<joined_thread> team;
  if (helpers > 1) {
    const signals_elsewhere quiet;
    where = processor_set::of_process();
    try {
      team.reserve(helpers - 1);
      while (team.size() + 1 < helpers) team.push_back(joined_thread(help));
    } catch (const std::exception&) {  // system_error, bad_alloc: fewer threads, then
    }
  }
  share();
  for (auto& each : team) each.join();
  if (first_error != nullptr) std::rethrow_exception(std::exchange(first_error, nullptr));
}

}  // namespace ferry::detail
