#include "support/step_case.hpp"

namespace ferry_bench {
namespace {

struct first_adagrad_step {
  double lr, eps;
  KOKKOS_FUNCTION double operator()(double gradient) const {
    return -lr * gradient / (Kokkos::abs(gradient) + eps);
  }
};

void step_adagrad(session& run) {
  const ferry::optim::adagrad rule{.lr = 0.1};
  time_steps(run, "step.adagrad", rule, 1, first_adagrad_step{rule.lr, rule.eps});
}

const registration mine{"step.adagrad", step_adagrad};

}  // namespace
}  // namespace ferry_bench
