// SPDX-License-Identifier: Apache-2.0
#include "support/step_case.hpp"

/// Rules that divide by the root of a sum or an average of squares.
namespace ferry_bench::step_squares_cases {
namespace {

void step_adagrad(session& run) {
  const ferry::optim::adagrad rule{.lr = 0.1, .eps = 0.25};
  time_steps(run, "step.adagrad", rule, first_normed_step{rule.lr, rule.eps});
}

struct first_adadelta_step {
  double lr, fresh, eps;
  KOKKOS_FUNCTION double operator()(double weight, double gradient) const {
    return weight - lr * gradient * Kokkos::sqrt(eps / (fresh * gradient * gradient + eps));
  }
};

void step_adadelta(session& run) {
  const ferry::optim::adadelta rule{.lr = 0.1, .eps = 0.25};
  time_rule(run, "step.adadelta", rule, first_adadelta_step{rule.lr, 1.0 - rule.rho, rule.eps});
}

/// lr g / (sqrt(fresh) |g| + eps), multiplied out.
void step_rmsprop(session& run) {
  const ferry::optim::rmsprop rule{.lr = 0.1, .eps = 0.25};
  const double root = Kokkos::sqrt(1.0 - rule.alpha);
  time_rule(run, "step.rmsprop", rule, first_normed_step{rule.lr / root, rule.eps / root});
}

/// One sum for each row.
struct first_rowwise_adagrad_step {
  double lr, eps;
  KOKKOS_FUNCTION double operator()(double weight, const summed_gradient& gradient,
                                    std::int64_t column) const {
    const std::int64_t width = gradient.gradient.width;
    double squares = 0;
    for (std::int64_t c = 0; c < width; ++c) squares += gradient(c) * gradient(c);
    return weight - lr * gradient(column) / (Kokkos::sqrt(squares / static_cast<double>(width)) + eps);
  }
};

void step_rowwise_adagrad(session& run) {
  const ferry::optim::rowwise_adagrad rule{.lr = 0.1, .eps = 0.25};
  time_rule(run, "step.rowwise_adagrad", rule, first_rowwise_adagrad_step{rule.lr, rule.eps});
}

const registration adagrad{"step.adagrad", step_adagrad};
const registration adadelta{"step.adadelta", step_adadelta};
const registration rmsprop{"step.rmsprop", step_rmsprop};
const registration rowwise_adagrad{"step.rowwise_adagrad", step_rowwise_adagrad};

}  // namespace
}  // namespace ferry_bench::step_squares_cases
