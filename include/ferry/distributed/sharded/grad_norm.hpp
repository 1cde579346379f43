// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/norm_over_ranks.hpp>
#include <ferry/optim/detail/options.hpp>
#include <ferry/optim/grad_norm.hpp>

#include <type_traits>

namespace ferry::optim {

/// grad_norm over ranks: one norm, the same on all of them, if one of the arguments is
/// sparse_grads(sharded_plan, grads). The gradients of a row are combined by its owner, from the batches of
/// all ranks. Arguments without a sharded_plan are gradients that every rank has, those of a replicated model
/// after all_reduce, and count once.
///
///   const auto plan = make_plan(exec, indices, sharded);
///   optim::clip_grad_norm(exec, 1.0, optim::sparse_grads(plan, grads), dense_grads);
///
/// Collective: each rank passes its part of the same plans; it may have no positions. Blocks until the ranks
/// know the sum. Its last bits depend on how rows are spread. Throws invalid_argument on all ranks if the
/// norms of their other arguments differ, and out_of_range for a plan with bad indices; otherwise as
/// grad_norm, and peer_error if that happened to another rank.
template <class Exec, class... Grads>
  requires(::ferry::detail::Fits<::ferry::detail::grad_norm_arguments, const Exec&, const Grads&...> &&
           (::ferry::detail::is_over_ranks<Grads> || ...))
[[nodiscard]] grad_total grad_norm(const Exec& exec, const Grads&... grads) {
  return ::ferry::detail::total_over_ranks<false>("grad_norm", exec, -1.0, grads...);
}

/// clip_grad_norm over ranks: each scales its own gradients by the factor of their one norm. See grad_norm
/// over ranks. Collective; the gradients are scaled in the order of `exec`.
template <class Exec, class... Grads>
  requires(::ferry::detail::Fits<::ferry::detail::clip_grad_norm_arguments, const Exec&, double, Grads...> &&
           (::ferry::detail::is_over_ranks<std::remove_cvref_t<Grads>> || ...))
[[nodiscard]] grad_total clip_grad_norm(const Exec& exec, double max_norm, Grads&&... grads) {
  require_not_negative("clip_grad_norm", "max_norm", max_norm);
  return ::ferry::detail::total_over_ranks<true>("clip_grad_norm", exec, max_norm, grads...);
}

}  // namespace ferry::optim
