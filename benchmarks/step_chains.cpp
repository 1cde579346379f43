// SPDX-License-Identifier: Apache-2.0
#include "support/step_case.hpp"

#include <cstdint>
#include <string>
#include <type_traits>

/// Adam with what looks at more than an element: transforms of whole rows, a check of the whole batch, counters of rows.
/// The bytes of plain adam count, which comes first.
namespace ferry_bench::step_chains_cases {
namespace {

constexpr ferry::optim::adam rule{.lr = 0.1, .eps = 0.25};
constexpr first_normed_step first{rule.lr, rule.eps};
constexpr double most_norm = 0.5;

/// The first step of adam on the gradient over the scale of the loss, whose norm is limited.
struct first_clipped_step {
  std::int64_t width;
  double loss_scale;

  KOKKOS_FUNCTION double operator()(double weight, const summed_gradient& gradient,
                                    std::int64_t column) const {
    double squares = 0;
    for (std::int64_t c = 0; c < width; ++c) squares += gradient(c) * gradient(c);
    const double norm = Kokkos::sqrt(squares) / loss_scale, factor = most_norm / (norm + 1e-6);
    return first_normed_step{rule.lr, rule.eps}(weight,
                                                gradient(column) / loss_scale * (factor < 1 ? factor : 1));
  }
};

/// Rules and policies by turns on the same sets of rows. Under catch_up a row has missed the steps of the other sets.
void step_chains(session& run) {
  const auto rows = run.chosen().step_rows, n = run.chosen().step_n;
  const auto sets = index_sets::make<distinct_row>(run, n, static_cast<std::size_t>(rows));
  const plan_sets plans(run, sets, static_cast<std::size_t>(rows));
  const auto time = [&](const std::string& variant, const auto& optimizer, const auto& step,
                        auto... policies) {
    step_case<ferry::device_space, std::remove_cvref_t<decltype(optimizer)>,
              std::remove_cvref_t<decltype(step)>>
        steps(run, "step.chains", optimizer, step, rows, n);
    steps.time(variant, sets, plans, policies...);
  };
  using namespace ferry;
  time("adam", rule, first);
  const auto width = run.chosen().width;
  const optim::clip_norm clipped{most_norm};
  time("clip_norm", optim::chain{rule, clipped}, first_clipped_step{width, 1.0});
  time("grad_scale_clip_norm", optim::chain{rule, optim::grad_scale{2.0}, clipped},
       first_clipped_step{width, 2.0});
  time("nonfinite_skip", rule, first, nonfinite::skip{});
  time("per_row", rule, first, step_count::per_row{});
  time("catch_up", rule, first, step_count::catch_up{});
}

const registration mine{"step.chains", step_chains};

}  // namespace
}  // namespace ferry_bench::step_chains_cases
