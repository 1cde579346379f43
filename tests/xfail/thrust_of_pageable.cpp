// SPDX-License-Identifier: Apache-2.0
// Thrust's kernels would read ordinary memory.
// expected-error: Thrust's kernels don't reach pageable_space
#include <ferry/ferry.hpp>
#include <ferry/interop/thrust.hpp>

struct thrust_of_pageable_pointer {
  using raw_pointer = float*;
  explicit thrust_of_pageable_pointer(float* data) : pointer(data) {}
  float* get() const { return pointer; }
  float* pointer;
};

void refused() {
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
#else
  ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
#endif
  static_cast<void>(ferry::to_thrust<thrust_of_pageable_pointer>(table));
}
