// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session.hpp"
#include "timing.hpp"

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <vector>

namespace ferry_bench {

namespace detail {

template <class Work>
void call_and_wait(const exec_space& exec, const Work& work, int call) {
  if constexpr (std::is_void_v<decltype(work(call))>) {
    work(call);
    exec.fence("ferry_bench::wait");
  } else {
    work(call).wait();
  }
}

template <class Work>
double burst_ms(stopwatch& watch, const Work& work, int first, int burst) {
  watch.start();
  if constexpr (std::is_void_v<decltype(work(first))>) {
    for (int i = 0; i < burst; ++i) work(first + i);
    return watch.stop() / burst;
  } else {
    std::vector<decltype(work(first))> flying;
    flying.reserve(static_cast<std::size_t>(burst));
    for (int i = 0; i < burst; ++i) flying.push_back(work(first + i));
    const double ms = watch.stop() / burst;
    for (auto& ticket : flying) ticket.wait();
    return ms;
  }
}

}  // namespace detail

/// Times `work(call)`, which enqueues on the session's instance and returns a ticket or nothing; `call`
/// counts up, so that each call can take other inputs. Short works are enqueued `burst` at a time for the
/// device's figure: a device that waits for the host between two kernels would be measured otherwise. They
/// run for 50 ms before that, in which a device that was idle reaches its clock: the first 7 to 10 ms of
/// such readings were 7 % slower (H200).
template <class Work>
measured measure(const session& run, int burst, const Work& work) {
  const auto& exec = run.exec();
  const int repeats = run.chosen().repeats;
  if (run.chosen().quick) burst = std::min(burst, 2);  // shows that bursts run
  int call = 0;
  for (int i = 0; i < run.chosen().warm_up; ++i) detail::call_and_wait(exec, work, call++);
  stopwatch watch(exec);
  if (burst > 1 && !run.chosen().quick) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    for (; std::chrono::steady_clock::now() < until; call += burst)
      detail::burst_ms(watch, work, call, burst);
  }
  measured reading;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    detail::call_and_wait(exec, work, call++);
    reading.wall.add(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  for (int i = 0; i < repeats; ++i) {
    reading.device.add(detail::burst_ms(watch, work, call, burst));
    call += burst;
  }
  return reading;
}

}  // namespace ferry_bench
