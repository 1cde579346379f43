// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/require_option.hpp>
#include <ferry/optim/grad_norm.hpp>
#include <ferry/optim/transforms/grad_scale.hpp>
#include <ferry/tensor/detail/finite.hpp>

#include <cstdint>

namespace ferry::optim {

/// Options of loss_scale, with torch.amp.GradScaler's names and defaults.
struct loss_scale_options {
  double init_scale = 65536.0;          ///< factor of the first losses, > 0
  double growth_factor = 2.0;           ///< of the scale after growth_interval good steps, > 1
  double backoff_factor = 0.5;          ///< of the scale after a step that overflowed, in (0, 1)
  std::int64_t growth_interval = 2000;  ///< good steps in a row before the scale grows, > 0
};

/// The training loop in 16-bit precision, as torch.amp.GradScaler: the loss is multiplied by a factor so that
/// small gradients do not underflow, the step divides by it, a step whose gradients overflowed is left out,
/// and the factor adapts.
///
///   optim::loss_scale scaler;
///   for (...) {
///     backward(loss * scaler.scale());
///     scaler.step(exec, [&](const optim::grad_scale& unscale) {
///       step(exec, optim::chain{adam, unscale}, table, state, plan, grads).wait();
///       step(exec, optim::chain{adam, unscale}, other, other_state, other_plan, other_grads).wait();
///     }, grads, other_grads);
///     scaler.update();
///   }
///
/// All tables of one step() are stepped or none is, as torch decides for an optimizer. For a single table
/// nonfinite::skip does that on the device, without the wait; tell update() afterwards whether
/// state.skipped() has grown.
class loss_scale {
 public:
  /// Throws invalid_argument, naming the option, for one outside of its range.
  explicit loss_scale(const loss_scale_options& options = {})
      : options_(options), scale_(options.init_scale) {
    const auto require = [](const char* option, double value, bool holds, const char* range) {
      require_option("loss_scale", option, value, holds && ::ferry::detail::is_finite(value), range);
    };
    require("init_scale", options.init_scale, options.init_scale > 0.0, "> 0 and finite");
    require("growth_factor", options.growth_factor, options.growth_factor > 1.0, "> 1 and finite");
    require("backoff_factor", options.backoff_factor,
            options.backoff_factor > 0.0 && options.backoff_factor < 1.0, "in (0, 1)");
    require("growth_interval", static_cast<double>(options.growth_interval), options.growth_interval > 0,
            "> 0");
  }

  /// The factor of the loss; torch's get_scale().
  [[nodiscard]] double scale() const { return scale_; }
  /// Good steps in a row since the scale has changed; torch's _growth_tracker. Save it with scale().
  [[nodiscard]] std::int64_t growth_tracker() const { return good_; }
  /// The norm of the gradients of the last step(), divided by the scale and before it was limited.
  [[nodiscard]] double total_norm() const { return norm_; }
  /// Continues from a saved scale and growth_tracker. Throws invalid_argument for a scale that is not > 0 and
  /// finite, and for a negative tracker.
  void restore(double scale, std::int64_t growth_tracker) {
    require_option("loss_scale", "scale", scale, scale > 0.0 && ::ferry::detail::is_finite(scale),
                   "> 0 and finite");
    require_not_negative("loss_scale", "growth_tracker", static_cast<double>(growth_tracker));
    scale_ = scale;
    good_ = growth_tracker;
  }

  /// Looks for gradients that are infinite or NaN. Where there is none it calls `steps(unscale)`, which steps
  /// with the grad_scale that it is given, and returns true. Else it calls nothing and returns false. `grads`
  /// are the arguments of grad_norm. Blocks for one pass over the gradients, as torch does. Several calls may
  /// come before one update(). Throws what grad_norm and `steps` throw.
  template <class Exec, class Steps, class... Grads>
  bool step(const Exec& exec, const Steps& steps, const Grads&... grads) {
    return step_within(exec, steps, -1.0, grads...);
  }

  /// step() which limits the norm of all gradients together to max_norm, as torch's unscale_ and
  /// clip_grad_norm_ before the step. The factor is part of `unscale`, so there is no pass that scales.
  /// Throws invalid_argument for a max_norm that is not > 0.
  template <class Exec, class Steps, class... Grads>
  bool step_clipped(const Exec& exec, double max_norm, const Steps& steps, const Grads&... grads) {
    require_option("loss_scale", "max_norm", max_norm, max_norm > 0.0, "> 0");
    return step_within(exec, steps, max_norm, grads...);
  }

  /// Adapts the scale, once for each iteration: times backoff_factor where a step() since the last update()
  /// was left out, times growth_factor after growth_interval iterations without one. A scale that would not
  /// be finite, or would be 0, stays.
  void update() {
    const bool overflowed = overflowed_;
    overflowed_ = false;
    update(overflowed);
  }
  /// update() by what the caller knows; for steps under nonfinite::skip.
  void update(bool overflowed) {
    if (overflowed) {
      change(options_.backoff_factor);
      good_ = 0;
    } else if (++good_ >= options_.growth_interval) {
      change(options_.growth_factor);
      good_ = 0;
    }
  }

 private:
  template <class Exec, class Steps, class... Grads>
  bool step_within(const Exec& exec, const Steps& steps, double max_norm, const Grads&... grads) {
    norm_ = grad_norm(exec, grads...).wait() / scale_;
    if (!::ferry::detail::is_finite(norm_)) {
      overflowed_ = true;
      return false;
    }
    double scale = scale_;
    if (max_norm > 0.0 && norm_ + 1e-6 > max_norm) scale = scale_ * ((norm_ + 1e-6) / max_norm);
    steps(grad_scale{.scale = scale});
    return true;
  }
  void change(double factor) {
    const double changed = scale_ * factor;
    if (changed > 0.0 && ::ferry::detail::is_finite(changed)) scale_ = changed;
  }

  loss_scale_options options_;
  double scale_;
  double norm_ = 0.0;
  std::int64_t good_ = 0;
  bool overflowed_ = false;
};

}  // namespace ferry::optim
