// SPDX-License-Identifier: Apache-2.0
#include "support/step_case.hpp"

namespace ferry_bench::step_adagrad_cases {
namespace {

void step_adagrad(session& run) {
  const ferry::optim::adagrad rule{.lr = 0.1, .eps = 0.25};
  time_steps(run, "step.adagrad", rule, first_normed_step{rule.lr, rule.eps});
}

const registration mine{"step.adagrad", step_adagrad};

}  // namespace
}  // namespace ferry_bench::step_adagrad_cases
