// SPDX-License-Identifier: Apache-2.0
#include <ferry/optim/loss_scale.hpp>

#include <ferry/optim/detail/require_option.hpp>
#include <ferry/tensor/detail/finite.hpp>

#include <algorithm>
#include <limits>

namespace ferry::optim {

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

}  // namespace ferry::optim
