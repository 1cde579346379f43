// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/optim/detail/measure_norm.hpp>
#include <ferry/optim/grad_total.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/slice.hpp>

#include <type_traits>
#include <utility>

namespace ferry::detail {

template <class T>
inline constexpr bool is_slice = false;
template <class T, class Space, class Extents>
inline constexpr bool is_slice<tensor_slice<T, Space, Extents>> = true;

}  // namespace ferry::detail

namespace ferry::optim {

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

}  // namespace ferry::optim

namespace ferry::detail {
template <class Grads, class Plan>
inline constexpr bool is_refused<optim::sparse_grads<Grads, Plan>> = !is_plan<Plan> && !is_plan_object<Plan>;
}  // namespace ferry::detail

namespace ferry::optim {

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
  ::ferry::detail::launch_context<Exec> call(exec, "grad_norm");
  ::ferry::detail::norm_job<Exec> job(call);
  (job.check(grads), ...);
  job.begin();
  (job.template add<false>(grads), ...);
  job.limit(-1.0);
  job.bring();
  return job.finish();
}

}  // namespace ferry::optim
