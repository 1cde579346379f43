// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/grad_norm.hpp>

#include <type_traits>

namespace ferry::optim {

/// torch.nn.utils.clip_grad_norm_ with norm_type 2: scales all gradients by max_norm / (total + 1e-6) if
/// that is below 1, `total` being their norm together, see grad_norm.
///
///   exec      the execution space instance that the work is enqueued on
///   max_norm  largest norm, >= 0
///   grads     as for grad_norm, but of elements that may be written. The gradients of sparse_grads
///             and bag_grads are scaled where they lie, before they are combined, which scales their sums by
///             the same factor
///
/// Does not wait for the device: the factor stays there, and a step that follows on `exec` reads the scaled
/// gradients. Where the norm is infinite or NaN the gradients become zero or NaN, as torch's do without
/// error_if_nonfinite; loss_scale leaves such steps out. To save the pass that scales, wait for grad_norm and
/// give grad_total::factor(max_norm) to grad_scale. Throws what grad_norm throws, and for a negative
/// max_norm.
template <class Exec, class... Grads>
  requires(::ferry::detail::Fits<::ferry::detail::clip_grad_norm_arguments, const Exec&, double, Grads...> &&
           !(::ferry::detail::is_over_ranks<std::remove_cvref_t<Grads>> || ...))
[[nodiscard]] grad_total clip_grad_norm(const Exec& exec, double max_norm, Grads&&... grads) {
  require_not_negative("clip_grad_norm", "max_norm", max_norm);
  ::ferry::detail::launch_context<Exec> call(exec, "clip_grad_norm");
  ::ferry::detail::norm_job<Exec> job(call);
  (job.check(grads), ...);
  job.begin();
  (job.template add<true>(grads), ...);
  job.limit(max_norm);
  job.bring();
  (job.scale(grads), ...);
  return job.finish();
}

}  // namespace ferry::optim
