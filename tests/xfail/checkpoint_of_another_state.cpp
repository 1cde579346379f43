// SPDX-License-Identifier: Apache-2.0
// A rule and the state of another one.
// expected-error: a checkpoint needs the state that make_state made for this optimizer
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

void refused(ferry::io::checkpoint& run) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::optim::adam adam;
  [[maybe_unused]] ferry::optim::adamw decoupled;
  auto state = ferry::optim::make_state(adam, table);
#ifdef FERRY_XFAIL_FIXED
  run.add("adam", adam, state);
#else
  run.add("adam", decoupled, state);
#endif
}
