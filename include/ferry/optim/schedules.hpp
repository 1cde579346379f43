// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>

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

/// The number of scheduler steps taken so far, an integer. A fraction, as of lr and step swapped,
/// does not compile.
struct schedule_step {
  std::int64_t count;  ///< scheduler steps

  /// Converts an integer.
  template <class Number>
    requires(std::is_arithmetic_v<Number>)
  constexpr schedule_step(Number number) : count(static_cast<std::int64_t>(number)) {
    static_assert(
        std::is_integral_v<Number>,
        "ferry: a schedule is called as schedule(lr, step, ...): the step is an integer, the number of scheduler steps taken so far.");
  }
};

/// torch's StepLR: lr gamma^floor(step / step_size).
double step_lr(double lr, schedule_step step, std::int64_t step_size, double gamma = 0.1);

/// torch's MultiStepLR: lr gamma^m, where m milestones are <= step. A milestone given twice counts twice. The
/// milestones need no order.
double multi_step_lr(double lr, schedule_step step, std::span<const std::int64_t> milestones,
                     double gamma = 0.1);

/// As above, for milestones in braces.
double multi_step_lr(double lr, schedule_step step, std::initializer_list<std::int64_t> milestones,
                     double gamma = 0.1);

/// torch's ExponentialLR: lr gamma^step.
double exponential_lr(double lr, schedule_step step, double gamma);

/// torch's CosineAnnealingLR: eta_min + (lr - eta_min) (1 + cos(pi step / t_max)) / 2. After t_max steps the
/// rate rises again, as torch's does.
double cosine_annealing_lr(double lr, schedule_step step, std::int64_t t_max, double eta_min = 0.0);

/// torch's CosineAnnealingWarmRestarts (Loshchilov and Hutter, "SGDR", 2017): a half cosine from lr to
/// eta_min over t_0 steps, then from lr again, each time over t_mult times as many steps. `step` may be a
/// fraction: torch's scheduler.step(epoch + i / batches).
double cosine_annealing_warm_restarts(double lr, double step, std::int64_t t_0, std::int64_t t_mult = 1,
                                      double eta_min = 0.0);

/// torch's LinearLR, a linear warm-up: lr times a factor that goes from start_factor to end_factor in
/// total_iters steps and stays there.
double linear_lr(double lr, schedule_step step, double start_factor = 1.0 / 3.0, double end_factor = 1.0,
                 std::int64_t total_iters = 5);

/// torch's ConstantLR: lr factor for total_iters steps, then lr.
double constant_lr(double lr, schedule_step step, double factor = 1.0 / 3.0, std::int64_t total_iters = 5);

/// torch's PolynomialLR: lr (1 - step / total_iters)^power, 0 from total_iters on.
double polynomial_lr(double lr, schedule_step step, std::int64_t total_iters = 5, double power = 1.0);

}  // namespace ferry::optim
