// SPDX-License-Identifier: Apache-2.0
#include "support/step_case.hpp"

namespace ferry_bench::step_sgd_cases {
namespace {

void step_sgd(session& run) {
  const ferry::optim::sgd rule{.lr = 0.1};
  time_steps(run, "step.sgd", rule, first_sgd_step{rule.lr});
}

void step_sgd_momentum(session& run) {
  const ferry::optim::sgd rule{.lr = 0.1, .momentum = 0.9};
  time_rule(run, "step.sgd_momentum", rule, first_sgd_step{rule.lr});
}

const registration plain{"step.sgd", step_sgd};
const registration momentum{"step.sgd_momentum", step_sgd_momentum};

}  // namespace
}  // namespace ferry_bench::step_sgd_cases
