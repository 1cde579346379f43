// SPDX-License-Identifier: Apache-2.0
// The workspace of a plan is bytes.
// expected-error: the workspace of make_plan must be an array of std::byte that may be written
#include <ferry/ferry.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  const std::vector<std::int64_t> indices{1, 2};
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<std::byte, ferry::device_space> workspace("workspace", 4096);
#else
  ferry::tensor<float, ferry::device_space> workspace("workspace", 4096);
#endif
  static_cast<void>(ferry::make_plan(exec, indices, 10, workspace));
}
