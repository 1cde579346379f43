// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/options.hpp>
#include <ferry/optim/grad_norm.hpp>
#include <ferry/optim/transforms.hpp>

#include <cstdint>

namespace ferry::optim {

/// Options of loss_scale, with torch.amp.GradScaler's names and defaults; min_scale is ferry's own.
struct loss_scale_options {
  double init_scale = 65536.0;          ///< factor of the first losses, in [min_scale, 2^126]
  double growth_factor = 2.0;           ///< of the scale after growth_interval good steps, > 1
  double backoff_factor = 0.5;          ///< of the scale after a step that overflowed, in (0, 1)
  std::int64_t growth_interval = 2000;  ///< good steps in a row before the scale grows, > 0
  /// Smallest scale, in [2^-126, 2^126]. torch has no such limit: there a run of bad batches halves the scale
  /// until 1 / scale is infinite. The default keeps 1 / scale finite in float, and no torch run that goes on
  /// is changed by it. DeepSpeed and Megatron use 1.
  double min_scale = 0x1p-126;
};

/// The training loop in 16-bit precision, as torch.amp.GradScaler: the loss is multiplied by a factor so that
/// small gradients do not underflow, the step divides by it, a step whose gradients overflowed is left out,
/// and the factor adapts. The scale stays in [min_scale, 2^126], so that scale and 1 / scale are normal
/// numbers in float.
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
/// nonfinite::skip does that on the device, without the wait; afterwards give update() whether
/// state.skipped() has grown.
class loss_scale {
 public:
  /// Throws invalid_argument, naming the option, for one outside of its range.
  explicit loss_scale(const loss_scale_options& options = {});

  /// The factor of the loss; torch's get_scale().
  [[nodiscard]] double scale() const { return scale_; }
  /// Good steps in a row since the scale has changed; torch's _growth_tracker. Save it with scale().
  [[nodiscard]] std::int64_t growth_tracker() const { return good_; }
  /// The norm of the gradients of the last step(), divided by the scale and before it was limited.
  [[nodiscard]] double total_norm() const { return norm_; }
  /// Continues from a saved scale and growth_tracker. Throws invalid_argument for a scale outside of
  /// [min_scale, 2^126], and for a negative tracker.
  void restore(double scale, std::int64_t growth_tracker);

  /// Looks for gradients that are infinite or NaN, or may become infinite in float when they are divided by
  /// the scale. If there is none it calls `steps(unscale)`, which steps with the grad_scale that it is given,
  /// and returns true. Else it calls nothing and returns false. `grads` are the arguments of grad_norm.
  /// Blocks for one pass over the gradients, as torch does. Several calls may come before one update().
  /// Throws what grad_norm and `steps` throw.
  template <class Exec, class Steps, class... Grads>
  bool step(const Exec& exec, const Steps& steps, const Grads&... grads) {
    return step_within(exec, steps, -1.0, grads...);
  }

  /// step() which limits the norm of all gradients together to max_norm, as torch's unscale_ and
  /// clip_grad_norm_ before the step. The factor is part of `unscale`, so there is no pass that scales.
  /// A step whose factor float can't hold is left out. Throws invalid_argument for a max_norm below 2^-126.
  template <class Exec, class Steps, class... Grads>
  bool step_clipped(const Exec& exec, double max_norm, const Steps& steps, const Grads&... grads) {
    require_option("loss_scale", "max_norm", max_norm, max_norm >= least_scale, ">= 2^-126");
    return step_within(exec, steps, max_norm, grads...);
  }

  /// Adapts the scale, once for each iteration: times backoff_factor if a step() since the last update()
  /// was left out, times growth_factor after growth_interval iterations without one. It goes no further than
  /// min_scale, and a scale that would exceed 2^126 stays, as torch's that would be infinite.
  void update();
  /// update() by what the caller knows; for steps under nonfinite::skip.
  void update(bool overflowed);

 private:
  /// Between these bounds a scale and its inverse are normal numbers in float.
  static constexpr double least_scale = 0x1p-126;
  static constexpr double most_scale = 0x1p126;

  [[nodiscard]] bool is_scale(double value) const;
  template <class Exec, class Steps, class... Grads>
  bool step_within(const Exec& exec, const Steps& steps, double max_norm, const Grads&... grads) {
    norm_ = grad_norm(exec, grads...).wait() / scale_;
    const double scale = scale_within(max_norm);
    if (scale == 0.0) return false;
    steps(grad_scale{.scale = scale});
    return true;
  }
  /// The divisor of the gradients; 0 if the step is left out. A negative max_norm limits nothing.
  double scale_within(double max_norm);
  void change(double factor);

  loss_scale_options options_;
  double scale_;
  double norm_ = 0.0;
  std::int64_t good_ = 0;
  bool overflowed_ = false;
};

}  // namespace ferry::optim
