// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/wake_time.hpp>

#include <Kokkos_Core.hpp>

#include <sched.h>

#ifdef KOKKOS_ENABLE_OPENMP
#include <omp.h>
#endif

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace ferry::detail {

namespace {

int count_usable_processors() {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  return sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors) : 0;
}

bool threads_spin() {
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  return policy == nullptr || (std::strcmp(policy, "passive") != 0 && std::strcmp(policy, "PASSIVE") != 0);
}

}  // namespace

std::string wake_time::advice() const {
  if (seconds < slow) return {};
  if (processors > 0 && threads > processors)
    return "set OMP_NUM_THREADS=" + std::to_string(processors) + ", one thread for each processor";
  if (spins)
    return "other work runs on the processors while the threads spin for it; set OMP_WAIT_POLICY=passive, or fewer OMP_NUM_THREADS";
  return {};
}

wake_time measure_wake_time() {
  wake_time threads_of_host;
#ifdef KOKKOS_ENABLE_OPENMP
  const int threads = Kokkos::OpenMP().concurrency();
  if (threads < 2 || omp_in_parallel() != 0) return threads_of_host;
  threads_of_host.threads = threads;
  threads_of_host.processors = count_usable_processors();
  threads_of_host.spins = threads_spin();
  std::atomic<int> visits{0};
  const auto wake = [&] {
#pragma omp parallel num_threads(threads)
    visits.fetch_add(1, std::memory_order_relaxed);
  };
  wake();  // starts the threads
  using clock = std::chrono::steady_clock;
  constexpr int most = 20;
  int turns = 0;
  const auto begin = clock::now();
  std::chrono::duration<double> spent{};
  for (; turns < most && spent.count() < most * 1e-3; spent = clock::now() - begin, ++turns) wake();
  threads_of_host.seconds = spent.count() / turns;
#endif
  return threads_of_host;
}

void hint_at_slow_threads() noexcept {
  static std::atomic<bool> is_told{false};
  if (is_told.load(std::memory_order_relaxed) || is_told.exchange(true)) return;
  const char* hints = std::getenv("FERRY_HINTS");
  if (hints != nullptr && std::strcmp(hints, "0") == 0) return;
  try {
    const wake_time wakes = measure_wake_time();
    const std::string advice = wakes.advice();
    if (advice.empty()) return;
    std::fprintf(
        stderr,
        "ferry: hint: a kernel waits %.0f us for its %d threads on %d processors: %s (FERRY_HINTS=0 prints no hints)\n",
        wakes.seconds * 1e6, wakes.threads, wakes.processors, advice.c_str());
  } catch (...) {  // no memory for the text
  }
}

}  // namespace ferry::detail
