// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/optim/detail/require_option.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <span>

/// Learning rates over time, with the names, defaults and formulas of torch.optim.lr_scheduler. Each is a
/// plain function of the initial rate and of the number of scheduler steps taken so far (epochs or batches,
/// from 0), so there is nothing to save with a checkpoint and any point can be computed directly:
///
///   adam.lr = optim::cosine_annealing_lr(1e-3, epoch, epochs);
///
/// torch computes most of them step by step from the previous rate; these are the closed forms, which equal
/// that up to rounding. A product of two schedules is a schedule, as with torch's ChainedScheduler:
/// linear_lr(1.0, i, 0.01, 1.0, 500) * step_lr(1e-3, i, 1000). All throw invalid_argument, naming the option,
/// for a negative number of steps and for options outside of their range.
namespace ferry::optim {

namespace detail {

inline void require_steps(std::string_view schedule, double step) {
  require_option(schedule, "step", step, step >= 0.0, ">= 0");
}
inline void require_positive(std::string_view schedule, const char* option, double value) {
  require_option(schedule, option, value, value > 0.0, "> 0");
}

}  // namespace detail

/// torch's StepLR: lr gamma^floor(step / step_size).
inline double step_lr(double lr, std::int64_t step, std::int64_t step_size, double gamma = 0.1) {
  detail::require_steps("step_lr", static_cast<double>(step));
  detail::require_positive("step_lr", "step_size", static_cast<double>(step_size));
  const std::int64_t decays = step / step_size;
  return lr * std::pow(gamma, static_cast<double>(decays));
}

/// torch's MultiStepLR: lr gamma^m, where m milestones are <= step. A milestone given twice counts twice. The
/// milestones need no order.
inline double multi_step_lr(double lr, std::int64_t step, std::span<const std::int64_t> milestones,
                            double gamma = 0.1) {
  detail::require_steps("multi_step_lr", static_cast<double>(step));
  const auto passed = std::count_if(milestones.begin(), milestones.end(),
                                    [step](std::int64_t milestone) { return milestone <= step; });
  return lr * std::pow(gamma, static_cast<double>(passed));
}

/// As above, for milestones in braces.
inline double multi_step_lr(double lr, std::int64_t step, std::initializer_list<std::int64_t> milestones,
                            double gamma = 0.1) {
  return multi_step_lr(lr, step, std::span<const std::int64_t>(milestones.begin(), milestones.size()), gamma);
}

/// torch's ExponentialLR: lr gamma^step.
inline double exponential_lr(double lr, std::int64_t step, double gamma) {
  detail::require_steps("exponential_lr", static_cast<double>(step));
  return lr * std::pow(gamma, static_cast<double>(step));
}

/// torch's CosineAnnealingLR: eta_min + (lr - eta_min) (1 + cos(pi step / t_max)) / 2. After t_max steps the
/// rate rises again, as torch's does.
inline double cosine_annealing_lr(double lr, std::int64_t step, std::int64_t t_max, double eta_min = 0.0) {
  detail::require_steps("cosine_annealing_lr", static_cast<double>(step));
  detail::require_positive("cosine_annealing_lr", "t_max", static_cast<double>(t_max));
  constexpr double pi = 3.14159265358979323846;
  const double turn = pi * static_cast<double>(step) / static_cast<double>(t_max);
  return eta_min + (lr - eta_min) * (1.0 + std::cos(turn)) / 2.0;
}

/// torch's CosineAnnealingWarmRestarts (Loshchilov and Hutter, "SGDR", 2017): a half cosine from lr to
/// eta_min over t_0 steps, then from lr again, each time over t_mult times as many steps. `step` may be a
/// fraction: torch's scheduler.step(epoch + i / batches).
inline double cosine_annealing_warm_restarts(double lr, double step, std::int64_t t_0,
                                             std::int64_t t_mult = 1, double eta_min = 0.0) {
  detail::require_steps("cosine_annealing_warm_restarts", step);
  detail::require_positive("cosine_annealing_warm_restarts", "t_0", static_cast<double>(t_0));
  detail::require_positive("cosine_annealing_warm_restarts", "t_mult", static_cast<double>(t_mult));
  auto period = static_cast<double>(t_0);
  double since = step;
  if (t_mult == 1) {
    since = std::fmod(step, period);
  } else {
    for (; since >= period; period *= static_cast<double>(t_mult)) since -= period;
  }
  constexpr double pi = 3.14159265358979323846;
  return eta_min + (lr - eta_min) * (1.0 + std::cos(pi * since / period)) / 2.0;
}

/// torch's LinearLR, a linear warm-up: lr times a factor that goes from start_factor to end_factor in
/// total_iters steps and stays there.
inline double linear_lr(double lr, std::int64_t step, double start_factor = 1.0 / 3.0,
                        double end_factor = 1.0, std::int64_t total_iters = 5) {
  detail::require_steps("linear_lr", static_cast<double>(step));
  require_option("linear_lr", "start_factor", start_factor, start_factor > 0.0 && start_factor <= 1.0,
                 "in (0, 1]");
  require_option("linear_lr", "end_factor", end_factor, end_factor >= 0.0 && end_factor <= 1.0, "in [0, 1]");
  detail::require_positive("linear_lr", "total_iters", static_cast<double>(total_iters));
  const auto done = static_cast<double>(std::min(step, total_iters));
  return lr * (start_factor + (end_factor - start_factor) * done / static_cast<double>(total_iters));
}

/// torch's ConstantLR: lr factor for total_iters steps, then lr.
inline double constant_lr(double lr, std::int64_t step, double factor = 1.0 / 3.0,
                          std::int64_t total_iters = 5) {
  detail::require_steps("constant_lr", static_cast<double>(step));
  require_option("constant_lr", "factor", factor, factor >= 0.0 && factor <= 1.0, "in [0, 1]");
  return step < total_iters ? lr * factor : lr;
}

/// torch's PolynomialLR: lr (1 - step / total_iters)^power, 0 from total_iters on.
inline double polynomial_lr(double lr, std::int64_t step, std::int64_t total_iters = 5, double power = 1.0) {
  detail::require_steps("polynomial_lr", static_cast<double>(step));
  detail::require_positive("polynomial_lr", "total_iters", static_cast<double>(total_iters));
  const auto done = static_cast<double>(std::min(step, total_iters));
  return lr * std::pow(1.0 - done / static_cast<double>(total_iters), power);
}

}  // namespace ferry::optim
