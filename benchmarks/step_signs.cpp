// SPDX-License-Identifier: Apache-2.0
#include "support/step_case.hpp"

/// Rules that divide by nothing.
namespace ferry_bench::step_signs_cases {
namespace {

/// Shrinks the weight, then takes a step of lr against the gradient's sign.
struct first_sign_step {
  double lr;
  double keep = 1.0;
  KOKKOS_FUNCTION double operator()(double weight, double gradient) const {
    return keep * weight - (gradient > 0 ? lr : gradient < 0 ? -lr : 0.0);
  }
};

void step_lion(session& run) {
  const ferry::optim::lion rule{.lr = 0.1, .weight_decay = 0.01};
  time_rule(run, "step.lion", rule, first_sign_step{rule.lr, 1.0 - rule.lr * rule.weight_decay});
}

void step_rprop(session& run) {
  const ferry::optim::rprop rule{.lr = 0.1};
  time_rule(run, "step.rprop", rule, first_sign_step{rule.lr});
}

struct first_asgd_step {
  double lr, keep;
  KOKKOS_FUNCTION double operator()(double weight, double gradient) const {
    return keep * weight - lr * gradient;
  }
};

void step_asgd(session& run) {
  const ferry::optim::asgd rule{.lr = 0.1, .lambd = 0.01};
  time_rule(run, "step.asgd", rule, first_asgd_step{rule.lr, 1.0 - rule.lambd * rule.lr});
}

const registration lion{"step.lion", step_lion};
const registration rprop{"step.rprop", step_rprop};
const registration asgd{"step.asgd", step_asgd};

}  // namespace
}  // namespace ferry_bench::step_signs_cases
