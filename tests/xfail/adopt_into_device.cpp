// SPDX-License-Identifier: Apache-2.0
// Host memory does not become the device's.
// expected-error: adopt takes host memory over as pinned_space or pageable_space; the other spaces make their
// own
#include <ferry/ferry.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  std::vector<float> memory(40);
  const std::span<float> span(memory);
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::adopt<ferry::pinned_space>(span, 10, 4));
#else
  static_cast<void>(ferry::adopt<ferry::device_space>(span, 10, 4));
#endif
}
