// SPDX-License-Identifier: Apache-2.0
#include "support/step_case.hpp"

#include <cmath>

/// Rules with two moving averages.
namespace ferry_bench::step_moments_cases {
namespace {

void step_adamax(session& run) {
  const ferry::optim::adamax rule{.lr = 0.1, .eps = 0.25};
  time_rule(run, "step.adamax", rule, first_normed_step{rule.lr, rule.eps});
}

void step_adamw(session& run) {
  const ferry::optim::adamw rule{.lr = 0.1, .eps = 0.25, .weight_decay = 0.01};
  time_rule(run, "step.adamw", rule, first_normed_step{rule.lr, rule.eps, 1.0 - rule.lr * rule.weight_decay});
}

/// The gradient's own share has its rate undone at the first step; the average's looks one step ahead.
void step_nadam(session& run) {
  const ferry::optim::nadam rule{.lr = 0.1, .eps = 0.25};
  const auto momentum = [&rule](double t) {
    return rule.betas[0] * (1.0 - 0.5 * std::pow(0.96, t * rule.momentum_decay));
  };
  const double ahead = momentum(2) * (1.0 - rule.betas[0]) / (1.0 - momentum(1) * momentum(2));
  time_rule(run, "step.nadam", rule, first_normed_step{rule.lr * (1.0 + ahead), rule.eps});
}

const registration adamax{"step.adamax", step_adamax};
const registration adamw{"step.adamw", step_adamw};
const registration nadam{"step.nadam", step_nadam};

}  // namespace
}  // namespace ferry_bench::step_moments_cases
