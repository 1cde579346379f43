// SPDX-License-Identifier: Apache-2.0

#include <ferry/error.hpp>
#include <ferry/optim/detail/options.hpp>
#include <ferry/optim/loss_scale.hpp>
#include <ferry/optim/schedules.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::optim {

using ::ferry::detail::joined;

void require_option(std::string_view rule, const char* option, double value, bool holds, const char* range) {
  if (holds && !ferry::detail::is_nan(value)) return;
  char text[32];
  const auto* end = std::to_chars(text, text + sizeof text, value).ptr;
  throw invalid_argument(joined("ferry::optim::", rule, ": ", option, " is ",
                                std::string(static_cast<const char*>(text), end), ", must be ", range));
}

void require_options(std::string_view rule, std::span<const option_range> options) {
  for (const auto& option : options) {
    require_option(rule, option.name, option.value, option.holds, option.range);
    require_option(rule, option.name, option.value, ferry::detail::is_finite(option.value), "finite");
  }
}

void require_not_negative(std::string_view rule, const char* option, double value) {
  require_option(rule, option, value, value >= 0.0, ">= 0");
}

void require_rate(std::string_view rule, const char* option, double value) {
  require_options(rule, std::array{decay_rate(option, value)});
}

const char* float_overflow(double value) {
  constexpr double most = std::numeric_limits<float>::max();
  return ferry::detail::is_finite(value) && (value > most || value < -most) ? "infinite" : nullptr;
}

const char* float_underflow(double value) {
  constexpr double least = std::numeric_limits<float>::denorm_min();
  return value != 0.0 && value < least && value > -least ? "0" : nullptr;
}

void require_float(std::string_view rule, const char* option, double value, const char* effect) {
  if (effect == nullptr) return;
  require_option(
      rule, option, value, false,
      joined("another number: it is ", effect, " in float, in which the step is computed").c_str());
}

void require_options_in_float(std::string_view rule, std::span<const option_range> options) {
  for (const auto& option : options) {
    if (option.in_float == float_range::any) continue;
    require_float(rule, option.name, option.value, float_overflow(option.value));
    if (option.in_float == float_range::exact)
      require_float(rule, option.name, option.value, float_underflow(option.value));
  }
}

void require_in_float(std::string_view rule, std::initializer_list<std::pair<const char*, double>> options) {
  for (const auto& [name, value] : options)
    require_options_in_float(rule, std::array{option_range{name, value, true, ""}});
}

loss_scale::loss_scale(const loss_scale_options& options) : options_(options), scale_(options.init_scale) {
  const auto require = [](const char* option, double value, bool holds, const char* range) {
    require_option("loss_scale", option, value, holds && ::ferry::detail::is_finite(value), range);
  };
  require("min_scale", options.min_scale, options.min_scale >= least_scale && options.min_scale <= most_scale,
          "in [2^-126, 2^126]");
  require("init_scale", options.init_scale, is_scale(options.init_scale), "in [min_scale, 2^126]");
  require("growth_factor", options.growth_factor, options.growth_factor > 1.0, "> 1 and finite");
  require("backoff_factor", options.backoff_factor,
          options.backoff_factor > 0.0 && options.backoff_factor < 1.0, "in (0, 1)");
  require("growth_interval", static_cast<double>(options.growth_interval), options.growth_interval > 0,
          "> 0");
}

void loss_scale::restore(double scale, std::int64_t growth_tracker) {
  require_option("loss_scale", "scale", scale, is_scale(scale), "in [min_scale, 2^126]");
  require_not_negative("loss_scale", "growth_tracker", static_cast<double>(growth_tracker));
  scale_ = scale;
  good_ = growth_tracker;
}

void loss_scale::update() {
  const bool overflowed = overflowed_;
  overflowed_ = false;
  update(overflowed);
}

void loss_scale::update(bool overflowed) {
  if (overflowed) {
    change(options_.backoff_factor);
    good_ = 0;
  } else if (++good_ >= options_.growth_interval) {
    change(options_.growth_factor);
    good_ = 0;
  }
}

bool loss_scale::is_scale(double value) const { return value >= options_.min_scale && value <= most_scale; }

double loss_scale::scale_within(double max_norm) {
  double scale = scale_;
  if (max_norm > 0.0 && norm_ + 1e-6 > max_norm) scale = scale_ * ((norm_ + 1e-6) / max_norm);
  // No element of the scaled gradients exceeds their norm.
  const double most = norm_ * (scale_ / scale);
  constexpr double most_float = std::numeric_limits<float>::max();
  if (::ferry::detail::is_finite(norm_) && scale <= most_scale && most <= most_float) return scale;
  overflowed_ = true;
  return 0.0;
}

void loss_scale::change(double factor) {
  const double changed = std::max(scale_ * factor, options_.min_scale);
  if (changed <= most_scale) scale_ = changed;
}

namespace {

double checked_count(std::string_view schedule, double step) {
  require_option(schedule, "step", step, step >= 0.0, ">= 0");
  return step;
}
double checked_count(std::string_view schedule, schedule_step step) {
  return checked_count(schedule, static_cast<double>(step.count));
}
/// From lr to eta_min and back while `angle` goes from 0 to 2 pi.
double on_cosine(double lr, double eta_min, double angle) {
  return eta_min + (lr - eta_min) * (1.0 + std::cos(angle)) / 2.0;
}
constexpr double pi = 3.14159265358979323846;

void require_positive(std::string_view schedule, const char* option, double value) {
  require_option(schedule, option, value, value > 0.0, "> 0");
}

}  // namespace

double step_lr(double lr, schedule_step step, std::int64_t step_size, double gamma) {
  checked_count("step_lr", step);
  require_positive("step_lr", "step_size", static_cast<double>(step_size));
  return lr * std::pow(gamma, static_cast<double>(step.count / step_size));
}

double multi_step_lr(double lr, schedule_step step, std::span<const std::int64_t> milestones, double gamma) {
  checked_count("multi_step_lr", step);
  const auto passed = std::count_if(milestones.begin(), milestones.end(),
                                    [step](std::int64_t milestone) { return milestone <= step.count; });
  return lr * std::pow(gamma, static_cast<double>(passed));
}

double multi_step_lr(double lr, schedule_step step, std::initializer_list<std::int64_t> milestones,
                     double gamma) {
  return multi_step_lr(lr, step, std::span<const std::int64_t>(milestones.begin(), milestones.size()), gamma);
}

double exponential_lr(double lr, schedule_step step, double gamma) {
  return lr * std::pow(gamma, checked_count("exponential_lr", step));
}

double cosine_annealing_lr(double lr, schedule_step step, std::int64_t t_max, double eta_min) {
  const double count = checked_count("cosine_annealing_lr", step);
  require_positive("cosine_annealing_lr", "t_max", static_cast<double>(t_max));
  return on_cosine(lr, eta_min, pi * count / static_cast<double>(t_max));
}

double cosine_annealing_warm_restarts(double lr, double step, std::int64_t t_0, std::int64_t t_mult,
                                      double eta_min) {
  double position = checked_count("cosine_annealing_warm_restarts", step);
  require_positive("cosine_annealing_warm_restarts", "t_0", static_cast<double>(t_0));
  require_positive("cosine_annealing_warm_restarts", "t_mult", static_cast<double>(t_mult));
  auto period = static_cast<double>(t_0);
  if (t_mult == 1) {
    position = std::fmod(step, period);
  } else {
    for (; position >= period; period *= static_cast<double>(t_mult)) position -= period;
  }
  return on_cosine(lr, eta_min, pi * position / period);
}

double linear_lr(double lr, schedule_step step, double start_factor, double end_factor,
                 std::int64_t total_iters) {
  const double count = checked_count("linear_lr", step);
  require_option("linear_lr", "start_factor", start_factor, start_factor > 0.0 && start_factor <= 1.0,
                 "in (0, 1]");
  require_option("linear_lr", "end_factor", end_factor, end_factor >= 0.0 && end_factor <= 1.0, "in [0, 1]");
  require_positive("linear_lr", "total_iters", static_cast<double>(total_iters));
  const auto iterations = std::min(count, static_cast<double>(total_iters));
  return lr * (start_factor + (end_factor - start_factor) * iterations / static_cast<double>(total_iters));
}

double constant_lr(double lr, schedule_step step, double factor, std::int64_t total_iters) {
  checked_count("constant_lr", step);
  require_option("constant_lr", "factor", factor, factor >= 0.0 && factor <= 1.0, "in [0, 1]");
  return step.count < total_iters ? lr * factor : lr;
}

double polynomial_lr(double lr, schedule_step step, std::int64_t total_iters, double power) {
  const double count = checked_count("polynomial_lr", step);
  require_positive("polynomial_lr", "total_iters", static_cast<double>(total_iters));
  const auto iterations = std::min(count, static_cast<double>(total_iters));
  return lr * std::pow(1.0 - iterations / static_cast<double>(total_iters), power);
}

}  // namespace ferry::optim

namespace ferry::detail {

std::string_view listed_name(std::string_view names, std::size_t number, std::size_t count) {
  std::size_t listed = names.empty() ? 0 : 1;
  for (const char letter : names) listed += letter == ' ' ? 1 : 0;
  if (listed != count) return {};
  for (; number != 0; --number) names.remove_prefix(names.find(' ') + 1);
  return names.substr(0, names.find(' '));
}

std::string option_name(std::string_view names, std::size_t number, std::size_t count) {
  const std::string_view name = listed_name(names, number, count);
  return name.empty() ? "option " + std::to_string(number) : std::string(name);
}

}  // namespace ferry::detail
