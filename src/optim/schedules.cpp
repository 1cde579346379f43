// SPDX-License-Identifier: Apache-2.0
#include <ferry/optim/schedules.hpp>

#include <ferry/optim/detail/require_option.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace ferry::optim {

namespace {

void require_schedule_steps(std::string_view schedule, double step) {
  require_option(schedule, "step", step, step >= 0.0, ">= 0");
}

void require_positive(std::string_view schedule, const char* option, double value) {
  require_option(schedule, option, value, value > 0.0, "> 0");
}

}  // namespace

double step_lr(double lr, std::int64_t step, std::int64_t step_size, double gamma) {
  require_schedule_steps("step_lr", static_cast<double>(step));
  require_positive("step_lr", "step_size", static_cast<double>(step_size));
  const std::int64_t decays = step / step_size;
  return lr * std::pow(gamma, static_cast<double>(decays));
}

double multi_step_lr(double lr, std::int64_t step, std::span<const std::int64_t> milestones, double gamma) {
  require_schedule_steps("multi_step_lr", static_cast<double>(step));
  const auto passed = std::count_if(milestones.begin(), milestones.end(),
                                    [step](std::int64_t milestone) { return milestone <= step; });
  return lr * std::pow(gamma, static_cast<double>(passed));
}

double multi_step_lr(double lr, std::int64_t step, std::initializer_list<std::int64_t> milestones,
                     double gamma) {
  return multi_step_lr(lr, step, std::span<const std::int64_t>(milestones.begin(), milestones.size()), gamma);
}

double exponential_lr(double lr, std::int64_t step, double gamma) {
  require_schedule_steps("exponential_lr", static_cast<double>(step));
  return lr * std::pow(gamma, static_cast<double>(step));
}

double cosine_annealing_lr(double lr, std::int64_t step, std::int64_t t_max, double eta_min) {
  require_schedule_steps("cosine_annealing_lr", static_cast<double>(step));
  require_positive("cosine_annealing_lr", "t_max", static_cast<double>(t_max));
  constexpr double pi = 3.14159265358979323846;
  const double turn = pi * static_cast<double>(step) / static_cast<double>(t_max);
  return eta_min + (lr - eta_min) * (1.0 + std::cos(turn)) / 2.0;
}

double cosine_annealing_warm_restarts(double lr, double step, std::int64_t t_0, std::int64_t t_mult,
                                      double eta_min) {
  require_schedule_steps("cosine_annealing_warm_restarts", step);
  require_positive("cosine_annealing_warm_restarts", "t_0", static_cast<double>(t_0));
  require_positive("cosine_annealing_warm_restarts", "t_mult", static_cast<double>(t_mult));
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

double linear_lr(double lr, std::int64_t step, double start_factor, double end_factor,
                 std::int64_t total_iters) {
  require_schedule_steps("linear_lr", static_cast<double>(step));
  require_option("linear_lr", "start_factor", start_factor, start_factor > 0.0 && start_factor <= 1.0,
                 "in (0, 1]");
  require_option("linear_lr", "end_factor", end_factor, end_factor >= 0.0 && end_factor <= 1.0, "in [0, 1]");
  require_positive("linear_lr", "total_iters", static_cast<double>(total_iters));
  const auto iterations = static_cast<double>(std::min(step, total_iters));
  return lr * (start_factor + (end_factor - start_factor) * iterations / static_cast<double>(total_iters));
}

double constant_lr(double lr, std::int64_t step, double factor, std::int64_t total_iters) {
  require_schedule_steps("constant_lr", static_cast<double>(step));
  require_option("constant_lr", "factor", factor, factor >= 0.0 && factor <= 1.0, "in [0, 1]");
  return step < total_iters ? lr * factor : lr;
}

double polynomial_lr(double lr, std::int64_t step, std::int64_t total_iters, double power) {
  require_schedule_steps("polynomial_lr", static_cast<double>(step));
  require_positive("polynomial_lr", "total_iters", static_cast<double>(total_iters));
  const auto iterations = static_cast<double>(std::min(step, total_iters));
  return lr * std::pow(1.0 - iterations / static_cast<double>(total_iters), power);
}

}  // namespace ferry::optim
