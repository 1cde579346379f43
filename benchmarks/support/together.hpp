// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session.hpp"
#include "timing.hpp"

#include <ferry/distributed.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace ferry_bench {

/// The time of `work(rank, exec, call)` and its wait, where all ranks begin at the same time: that of the slowest
/// rank, by the host's clock. `work` returns a ticket or nothing; `call` counts up.
template <class Work>
timing together(const session& run, const ferry::communicator& comm, const Work& work) {
  using clock = std::chrono::steady_clock;
  const int ranks = comm.size(), warm_up = run.chosen().warm_up, repeats = run.chosen().repeats;
  std::vector<std::vector<double>> readings(static_cast<std::size_t>(ranks));
  std::atomic<int> arrivals{0};
  comm.run([&](int rank, const auto& exec) {
    for (int call = 0; call < warm_up + repeats; ++call) {
      exec.fence("ferry_bench::together");
      comm.barrier();
      // Threads wake up from the barrier one after the other, so they meet once more, awake.
      ++arrivals;
      const auto give_up = clock::now() + std::chrono::seconds(1);
      while (arrivals.load() < (call + 1) * ranks && clock::now() < give_up) continue;
      const auto begin = clock::now();
      if constexpr (std::is_void_v<decltype(work(rank, exec, call))>) {
        work(rank, exec, call);
        exec.fence("ferry_bench::together");
      } else {
        work(rank, exec, call).wait();
      }
      const double ms = std::chrono::duration<double, std::milli>(clock::now() - begin).count();
      if (call >= warm_up) readings[static_cast<std::size_t>(rank)].push_back(ms);
    }
  });
  timing times;
  for (int i = 0; i < repeats; ++i) {
    double slowest = 0;
    for (const auto& list : readings) slowest = std::max(slowest, list[static_cast<std::size_t>(i)]);
    times.add(slowest);
  }
  return times;
}

}  // namespace ferry_bench
