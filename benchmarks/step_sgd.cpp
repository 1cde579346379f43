#include "support/step_case.hpp"

namespace ferry_bench {
namespace {

void step_sgd(session& run) {
  const ferry::optim::sgd rule{.lr = 0.1};
  time_steps(run, "step.sgd", rule, 0, first_sgd_step{rule.lr});
}

const registration mine{"step.sgd", step_sgd};

}  // namespace
}  // namespace ferry_bench
