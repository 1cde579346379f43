// SPDX-License-Identifier: Apache-2.0
#include "baseline/baseline.hpp"
#include "support/tables.hpp"

namespace ferry_bench {
namespace {

template <class Space>
timing seconds_to_allocate(std::size_t bytes, int times) {
  timing durations;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const ferry::tensor<float, Space> table("table", bytes / 4);
    durations.add(seconds_since(begin) * 1e3);
  }
  return durations;
}

void add(session& run, const std::string& name, std::size_t bytes, const timing& times) {
  figure result;
  result.name = name;
  result.setting = {{"gib", static_cast<double>(bytes) / 0x1p30}};
  result.time.device = times;
  result.time.wall = times;
  result.bytes = static_cast<double>(bytes);
  result.counts = "allocated";
  result.verified = true;
  run.results().add(result);
}

/// Page-locked memory, ferry's way before and after the vendor's: whoever comes first pays where the machine
/// itself still has to find the memory.
void allocate(session& run) {
  const std::size_t bytes = run.host_table_bytes();
  timing ours = seconds_to_allocate<ferry::pinned_space>(bytes, 1);
  const auto vendors = baseline::seconds_to_lock(bytes);
  ours.add(seconds_to_allocate<ferry::pinned_space>(bytes, 1).median());
  add(run, "memory.pinned", bytes, ours);
  add(run, "memory.mapped", bytes, seconds_to_allocate<ferry::mapped_space>(bytes, 1));
  if (!vendors) return run.results().skipped("memory.pinned.vendor", "this backend has no such function");
  timing theirs;
  theirs.add(*vendors * 1e3);
  add(run, "memory.pinned.vendor", bytes, theirs);
  // A rate over a rate, as everywhere: above 1 is faster than the vendor's function.
  run.results().ratio("memory.pinned", "memory.pinned.vendor", theirs.median() / ours.median());
}

const registration mine{"memory", allocate};

}  // namespace
}  // namespace ferry_bench
