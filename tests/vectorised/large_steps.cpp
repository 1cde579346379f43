// SPDX-License-Identifier: Apache-2.0
#include "optim/large_rules.hpp"

#include <ferry/ferry.hpp>

#include <cstdint>

/// Steps with large kernels, as a program would write them: what launches.py looks at.
namespace ferry_test {

using exec = Kokkos::DefaultExecutionSpace;
template <class T>
using table = ferry::tensor<T, ferry::pinned_space>;
template <class T>
using gradients = ferry::tensor<T, ferry::device_space>;

template <class Path, class StepCount, class Rule, class T>
void step(const Rule& rule, table<T>& weights, const ferry::row_plan& plan, const gradients<T>& grads) {
  auto state = ferry::optim::make_state(rule, weights);
  ferry::step(exec(), rule, weights, state, plan, grads, Path{}, StepCount{}).detach();
}

void large_steps(table<double>& weights, const ferry::row_plan& plan, const gradients<double>& grads) {
  using ferry::path::direct, ferry::path::ordered;
  using ferry::step_count::global, ferry::step_count::catch_up;
  const ferry::optim::adam amsgrad{.amsgrad = true};
  step<ordered, catch_up>(amsgrad, weights, plan, grads);
  const ferry::optim::chain stages{amsgrad, ferry::optim::grad_scale{8.0}, ferry::optim::clip_value{6.0},
                                   ferry::optim::clip_norm{2.0}, ferry::optim::max_norm{3.0}};
  step<ordered, global>(stages, weights, plan, grads);
  step<direct, global>(polynomial_rule<20>{}, weights, plan, grads);
  step<ordered, global>(polynomial_rule<20>{}, weights, plan, grads);
  step<direct, global>(averages_rule<6, 24>{}, weights, plan, grads);
  step<ordered, global>(averages_rule<6, 24>{}, weights, plan, grads);
}

}  // namespace ferry_test
