// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/optim/detail/measure_norm.hpp>
#include <ferry/optim/detail/options.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/slice.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace ferry::detail {

template <class T>
inline constexpr bool is_slice = false;
template <class T, class Space, class Extents>
inline constexpr bool is_slice<tensor_slice<T, Space, Extents>> = true;

}  // namespace ferry::detail

namespace ferry::optim {

/// The norm of gradients in flight, from grad_norm and clip_grad_norm. Move-only. The destructor waits, as
/// that of a ticket does.
class grad_total {
 public:
  /// For the verbs: `result` holds the norm once `work` has ended.
  grad_total(ticket work, std::shared_ptr<void> result)
      : result_(std::move(result)), work_(std::move(work)) {}

  /// Blocks until the norm is known and returns it: that of the gradients before they were scaled. It is
  /// infinite or NaN if a gradient is, and infinite if it exceeds the range of double itself.
  double wait() {
    work_.wait();
    return *static_cast<const double*>(result_.get());
  }

  /// True if wait() would return without blocking. Never blocks.
  [[nodiscard]] bool ready() const { return work_.ready(); }

  /// The factor that clip_grad_norm applies to the gradients: min(1, max_norm / (norm + 1e-6)); NaN for a
  /// norm that is NaN. Blocks as wait() does. Throws invalid_argument for a negative max_norm.
  [[nodiscard]] double factor(double max_norm) {
    require_not_negative("grad_total", "max_norm", max_norm);
    const double factor = max_norm / (wait() + 1e-6);
    return factor > 1.0 ? 1.0 : factor;
  }

 private:
  std::shared_ptr<void> result_;
  ticket work_;  // after the result: it waits before the memory is reused
};

/// The gradient of a table of which a batch names some rows, for grad_norm and clip_grad_norm: one row of
/// `grads` for each index of `plan`. Gradients of one row are combined before their norm is taken, as torch
/// does by coalescing.
///
///   optim::clip_grad_norm(exec, 1.0, optim::sparse_grads(plan, grads), dense_grads);
///
/// `plan` may also be a sharded_plan: then the ranks of its group measure the norm together, see
/// ferry/distributed/sharded/grad_norm.hpp.
template <class Grads, class Plan = row_plan>
struct sparse_grads {
  static_assert(std::is_lvalue_reference_v<Grads> || ::ferry::detail::is_slice<Grads>,
                "ferry: sparse_grads refers to gradients, so they can't be a temporary array; a slice may.");
  static_assert(
      ::ferry::detail::is_plan<Plan> || ::ferry::detail::is_plan_object<Plan>,
      "ferry: sparse_grads is called as sparse_grads(plan, grads), with the plan that make_plan(exec, indices, rows) returns and a row of gradients for each of its indices.");
  Plan plan;    ///< of the batch's indices
  Grads grads;  ///< one row per index

  /// Copies the plan, which shares its arrays, and a slice; refers to other gradients, which must outlive
  /// this object.
  sparse_grads(Plan batch_plan, Grads&& values)
      : plan(std::move(batch_plan)), grads(std::forward<Grads>(values)) {}
};
/// Deduces a reference, or a slice.
/// @{
template <class Grads>
sparse_grads(row_plan, Grads&&) -> sparse_grads<Grads>;
template <class Plan, class Grads>
  requires(::ferry::detail::is_plan_object<Plan>)
sparse_grads(Plan, Grads&&)
->sparse_grads<Grads, Plan>;
/// @}
/// For arguments that are no plan and gradients, which the class refuses.
template <class First, class Second>
  requires(!::ferry::detail::is_plan<First> && !::ferry::detail::is_plan_object<First>)
sparse_grads(const First&, const Second&)
->sparse_grads<const Second&, const First&>;

namespace detail {

/// grad_norm, and if Clips clip_grad_norm; no limit if max_norm is negative.
template <bool Clips, class Exec, class... Grads>
grad_total total_of(const char* verb, const Exec& exec, double max_norm, Grads&... grads) {
  ::ferry::detail::launch_context<Exec> call(exec, verb);
  ::ferry::detail::norm_job<Exec> job(call);
  (job.check(grads), ...);
  job.begin();
  (job.template add<Clips>(grads), ...);
  job.limit(max_norm);
  if constexpr (Clips) (job.scale(grads), ...);
  return job.finish();
}

}  // namespace detail

/// The Euclidean norm of all gradients together, as torch.nn.utils.get_total_norm: the root of the sum of all
/// squares over several tables and dense arrays.
///
///   exec   the execution space instance that the work is enqueued on
///   grads  each an array of numbers with dense rows, in memory that `exec` reaches, or sparse_grads of a
///          plan that the type of `exec` made and of such an array; for pooled rows bag_grads
///
/// Does not wait for the device: grad_total::wait() does. The squares are summed in double and in an order
/// that depends on the extents alone, so every backend gives the same bits. Positions of a plan without a row
/// (bounds) count nothing; the verb that steps with the plan reports them. The gradients must live until the
/// work has ended. Throws invalid_argument for strided rows, for a plan with another number of positions, and
/// for memory that the device does not reach.
template <class Exec, class... Grads>
  requires(::ferry::detail::Fits<::ferry::detail::grad_norm_arguments, const Exec&, const Grads&...> &&
           !(::ferry::detail::is_over_ranks<Grads> || ...))
[[nodiscard]] grad_total grad_norm(const Exec& exec, const Grads&... grads) {
  return detail::total_of<false>("grad_norm", exec, -1.0, grads...);
}

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
  return detail::total_of<true>("clip_grad_norm", exec, max_norm, grads...);
}

}  // namespace ferry::optim

template <class Grads, class Plan>
inline constexpr bool ferry::detail::is_refused<ferry::optim::sparse_grads<Grads, Plan>> =
    !is_plan<Plan> && !is_plan_object<Plan>;
