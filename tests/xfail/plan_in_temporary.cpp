// SPDX-License-Identifier: Apache-2.0
// The plan would lie in a workspace that was freed.
// expected-error: a reference to the array is kept, so it can't be a temporary tensor, vector or array
#include <ferry/ferry.hpp>

#include <cstddef>
#include <vector>

void refused(const Kokkos::DefaultExecutionSpace& exec) {
  using workspace = ferry::tensor<std::byte, ferry::device_space>;
  const std::vector<int> indices(10);
#ifdef FERRY_XFAIL_FIXED
  workspace room("room", 4096);
  static_cast<void>(ferry::make_plan(exec, indices, 4, room));
#else
  static_cast<void>(ferry::make_plan(exec, indices, 4, workspace("room", 4096)));
#endif
}
