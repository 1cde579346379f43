// SPDX-License-Identifier: Apache-2.0
#include "baseline/baseline.hpp"
#include "support/gather_case.hpp"

#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/device_span.hpp>
#include <ferry/runtime/trace.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace ferry_bench {
namespace {

/// Records of a gather by one kernel: spans of the verb, the kernel and the wait, and counters.
void hooks_of_one_call(const exec_space& exec, const std::string& label) {
  ferry::detail::trace_span verb("ferry::", "gather", "verb");
  ferry::detail::count_move(
      verb, ferry::detail::places_of_move<ferry::path::direct, ferry::device_space, ferry::device_space>, 0,
      false, "direct", "device_space", "device_space");
  { const ferry::detail::device_span<exec_space> kernel(exec, label, "kernel"); }
  const ferry::detail::trace_span wait("ferry::wait", {}, "wait");
}

void add(session& run, const std::string& name, const timing& times) {
  figure result;
  result.name = name;
  result.time.device = times;
  result.time.wall = times;
  result.verified = true;
  run.results().add(result);
}

/// The hooks while nobody listens, next to the shortest call of a verb: one row from device memory.
void observe(session& run) {
  if (ferry::detail::trace_listeners() != 0)
    return run.results().skipped("observing", "a trace or a profiler listens (FERRY_TRACE, FERRY_NVTX)");
  constexpr int calls = 100'000;
  const std::string label = "ferry::gather::direct";
  timing hooks;
  for (int round = 0; round < 9; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) hooks_of_one_call(run.exec(), label);
    hooks.add(seconds_since(begin) * 1e3 / calls);
  }
  add(run, "observing.hooks", hooks);

  ferry::tensor<float, ferry::device_space> table("table", 16, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 1, 4);
  ferry::tensor<std::int64_t, ferry::device_space> indices("indices", 1);
  ferry::init::zeros(run.exec(), table);
  ferry::init::zeros(run.exec(), indices);
  const auto time = measure(
      run, 1, [&](int) { return ferry::gather(run.exec(), table, indices, batch, ferry::path::direct{}); });
  add(run, "observing.gather", time.wall);
  run.results().ratio("observing.hooks", "observing.gather", hooks.median() / time.wall.median());
}

const registration mine{"observing", observe};

}  // namespace
}  // namespace ferry_bench
