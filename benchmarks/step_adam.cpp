#include "support/step_case.hpp"

namespace ferry_bench {
namespace {

/// Both moments' corrections undo their weights at the first step.
struct first_adam_step {
  double lr, eps;
  KOKKOS_FUNCTION double operator()(double gradient) const {
    return -lr * gradient / (Kokkos::abs(gradient) + eps);
  }
};

void step_adam(session& run) {
  const ferry::optim::adam rule{.lr = 0.1};
  time_steps(run, "step.adam", rule, 2, first_adam_step{rule.lr, rule.eps});
}

const registration mine{"step.adam", step_adam};

}  // namespace
}  // namespace ferry_bench
