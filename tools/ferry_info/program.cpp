// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <ferry/ferry.hpp>

#include <Kokkos_Core.hpp>

#include <sched.h>

#ifdef KOKKOS_ENABLE_OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>

namespace ferry_info {

namespace {

using exec_space = Kokkos::DefaultExecutionSpace;
using clock = std::chrono::steady_clock;

double gb_per_s(std::int64_t bytes, clock::time_point begin) {
  const double seconds = std::chrono::duration<double>(clock::now() - begin).count();
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

/// The best of a few copies: what others do on the machine only slows a copy down.
template <class From, class To>
double copy_rate(const exec_space& exec, const From& source, To& target, std::int64_t bytes) {
  double best = 0;
  for (int round = 0; round < 4; ++round) {
    const auto begin = clock::now();
    ferry::copy(exec, source, target).wait();
    best = std::max(best, gb_per_s(bytes, begin));
  }
  return best;
}

template <class Space>
measured_rates::space measure_space(const exec_space& exec,
                                    ferry::tensor<std::int32_t, ferry::device_space>& device,
                                    std::int64_t count) {
  const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(std::int32_t));
  measured_rates::space rates;
  rates.name = std::string(Space::name);
  const auto begin = clock::now();
  ferry::tensor<std::int32_t, Space> block("ferry-info", count);
  rates.allocation = gb_per_s(bytes, begin);
  // Pages that were only mapped so far cost their first user nothing of a rate.
  if constexpr (ferry::detail::device_is_host<Space> || std::is_same_v<Space, ferry::pageable_space>)
    rates.allocation = 0;
  rates.made_of = block.describe();
  ferry::init::zeros(exec, block);
  rates.to_device = copy_rate(exec, block, device, bytes);
  rates.from_device = copy_rate(exec, device, block, bytes);
  return rates;
}

int count_usable_processors() {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  return sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors) : 0;
}

bool threads_spin() {
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  return policy == nullptr || (std::strcmp(policy, "passive") != 0 && std::strcmp(policy, "PASSIVE") != 0);
}

/// Wakes the threads some times. Takes 0.2 ms, and at most about 20 ms if they are slow.
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
  constexpr int most = 20;
  int turns = 0;
  const auto begin = clock::now();
  std::chrono::duration<double> spent{};
  for (; turns < most && spent.count() < most * 1e-3; spent = clock::now() - begin, ++turns) wake();
  threads_of_host.seconds = spent.count() / turns;
#endif
  return threads_of_host;
}

}  // namespace

void describe_program(report& facts) {
  const exec_space exec;
  facts.kokkos = std::to_string(KOKKOS_VERSION / 10000) + "." + std::to_string(KOKKOS_VERSION / 100 % 100) +
                 "." + std::to_string(KOKKOS_VERSION % 100);
  facts.execution_space = exec_space::name();
  facts.host_space = Kokkos::DefaultHostExecutionSpace::name();
  facts.host_threads = Kokkos::DefaultHostExecutionSpace().concurrency();
  facts.wakes = measure_wake_time();
  try {
    const auto profile = ferry::current_profile(exec);
    facts.profile.origin = ferry::profile_origin(exec);
    for (std::size_t i = 0; i < ferry::detail::reading_names.size(); ++i)
      if ((profile.measured >> i & 1u) != 0u)
        facts.profile.measured.emplace_back(ferry::detail::reading_names[i]);
    for (const auto& field : ferry::detail::profile_fields)
      facts.profile.numbers.emplace_back(std::string(field.name), profile.*field.member);
  } catch (const ferry::error& failure) {  // FERRY_PROFILE names something that is not a profile
    facts.profile.origin = failure.what();
  }
}

measured_rates measure(std::int64_t bytes) {
  measured_rates rates;
  const exec_space exec;
  const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(std::int32_t));
  rates.bytes = count * static_cast<std::int64_t>(sizeof(std::int32_t));
  try {
    ferry::tensor<std::int32_t, ferry::device_space> device("ferry-info", count);
    ferry::init::zeros(exec, device);
    rates.spaces.push_back(measure_space<ferry::pinned_space>(exec, device, count));
    rates.spaces.push_back(measure_space<ferry::mapped_space>(exec, device, count));
    rates.spaces.push_back(measure_space<ferry::pageable_space>(exec, device, count));
  } catch (const std::exception& failure) {
    rates.skipped = failure.what();
  }
  return rates;
}

}  // namespace ferry_info
