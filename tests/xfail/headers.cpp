// SPDX-License-Identifier: Apache-2.0
// Verbs whose header is not included. See xfail.py.
#include "arrays.hpp"

#ifdef FERRY_XFAIL_FIXED
#include <ferry/bags.hpp>
#endif

// ---- gather_bags_without_its_header
// expected-first-error: gather_bags is declared in <ferry/bags.hpp>; include that header
void refused() {
  const ferry::tensor<float, ferry::device_space> table("table", 10, 4);
  ferry::gather_bags(exec, table, indices, offsets, pooled, ferry::pooling::sum{}).wait();
}

// ---- step_bags_without_its_header
// expected-first-error: step_bags is declared in <ferry/bags.hpp>; include that header
void refused() {
  ferry::tensor<float, ferry::device_space> table("table", 10, 4);
  const ferry::tensor<float, ferry::device_space> pooled("pooled", 2, 4);
  const ferry::optim::sgd rule{.lr = 0.1};
  auto state = ferry::optim::make_state(rule, table);
  ferry::step_bags(exec, rule, table, state, indices, offsets, pooled, ferry::pooling::sum{}).wait();
}
