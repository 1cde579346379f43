// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/detail/measure_norm.hpp>
#include <ferry/optim/detail/options.hpp>
#include <ferry/optim/detail/square_sums.hpp>
#include <ferry/optim/grad_norm.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

/// The norm of gradients that the ranks of a group have together.
namespace ferry::detail {

/// @cond
template <class Values, class Exec>
inline constexpr bool is_over_ranks<optim::sparse_grads<Values, sharded_plan<Exec>>> = true;
/// @endcond

template <class Values, class Exec>
struct norm_part<optim::sparse_grads<Values, sharded_plan<Exec>>> {
  using grads_type = optim::sparse_grads<Values, sharded_plan<Exec>>;

  static auto& gradients(auto& grads) { return grads.grads; }
  template <class On>
  static void check(launch_context<On>& call, const grads_type& grads, const auto& array) {
    static_assert(std::is_same_v<On, Exec>,
                  "ferry: a sharded_plan serves verbs of the execution space that made it.");
    if (grads.plan.positions() != array.rows())
      throw invalid_argument(joined("ferry::", call.verb(), ": the plan has ", grads.plan.positions(),
                                    " positions for the rows of ", array.describe()));
  }
  static std::int64_t count(const grads_type&, const auto&) { return 0; }
};

/// Ranks exchange it: the squares of the rows that a rank owns, and the norm of the gradients that all have.
struct rank_norm {
  kernels::square_ranges owned;
  double replicated = 0.0;
};

/// Refuses a plan of another group or with bad indices.
template <class Grads>
void require_plan_of_group(const char* verb, const collective& call, [[maybe_unused]] const Grads& grads) {
  if constexpr (is_over_ranks<Grads>) {
    const auto& plan = grads.plan.storage();
    if (plan.comm.group() != call.group() || plan.first != call.first() || plan.is_whole != call.is_whole())
      throw invalid_argument(joined(
          "ferry::", verb, ": the plans belong to different groups, or another rank made one of them"));
    for (const batch_findings& findings : plan.headers.findings)
      if (findings.out_of_range != 0)
        throw out_of_range(joined("ferry::", verb, ": ", findings.out_of_range,
                                  " of the indices of a plan are out of range; the first is at position ",
                                  findings.first_position));
  }
}

/// Adds the squares of the rows that this thread owns. Gradients travel to the owners of their rows, which
/// combine them.
template <class Exec, class Grads>
void add_owned_squares([[maybe_unused]] collective& call, [[maybe_unused]] const Exec& exec,
                       [[maybe_unused]] kernels::square_ranges& sum, [[maybe_unused]] Grads& grads) {
  if constexpr (is_over_ranks<std::remove_cvref_t<Grads>>) {
    const auto& plan = grads.plan.storage();
    const buckets& items = plan.items;
    const auto values = read_only(make_ref(grads.grads));
    using array = std::remove_cvref_t<decltype(values)>;
    using value = std::remove_const_t<typename array::value_type>;
    using space = near_space<Exec>;
    const std::int64_t width = values.width();
    const fence_on_exception<Exec> work(exec);
    auto packed = payload<value, space>(exec, "gradients", items.items(), width);
    batch_values<value, typename array::memory_space>{values}.pack(exec, items.place, items.items(), packed);
    for (int r = call.first(); r < call.last(); ++r) {
      const Exec shard_exec = shard_instance(plan.comm, r, exec);
      const row_plan& rows = plan.owned_by(r).plan;
      auto arrived = payload<value, space>(shard_exec, "gradients of all ranks", rows.positions(), width);
      exchange_parts parts(call, r);
      parts.add(items, std::as_const(packed).data(), begins_for(call, items, plan.headers.in_begin, r),
                arrived.data(), width);
      parts.template move<space>(exec, shard_exec);
      if (items.everywhere && r != 0) continue;  // all ranks have the same rows: rank 0 counts
      kernels::add_square(sum, optim::grad_norm(shard_exec, optim::sparse_grads(rows, arrived)).wait());
    }
  }
}

/// The norm of the arguments that all ranks have. Checks all arguments.
template <class Exec, class... Grads>
double replicated_norm(const char* verb, const Exec& exec, Grads&... grads) {
  launch_context<Exec> work(exec, verb);
  norm_job<Exec> job(work);
  (job.check(grads), ...);
  job.begin();
  const auto add = [&](auto& part) {
    if constexpr (!is_over_ranks<std::remove_cvref_t<decltype(part)>>) job.template add<false>(part);
  };
  (add(grads), ...);
  job.limit(-1.0);
  return job.finish().wait();
}

/// The sum of all squares, the same on all ranks.
template <class Exec, class... Grads>
kernels::square_ranges squares_over_ranks(collective& call, const char* verb, const Exec& exec,
                                          Grads&... grads) {
  rank_norm own_norm;
  (require_plan_of_group(verb, call, grads), ...);
  own_norm.replicated = replicated_norm(verb, exec, grads...);
  call.agree();  // no argument is refused from here on
  (add_owned_squares(call, exec, own_norm.owned, grads), ...);
  const auto norms = call.is_whole() ? std::vector<rank_norm>{own_norm}
                                     : call.all_gather(std::span<const rank_norm>(&own_norm, 1));
  call.close();
  kernels::square_ranges total;
  for (std::size_t r = 0; r < norms.size(); ++r) {
    total.add(norms[r].owned);
    if (std::bit_cast<std::uint64_t>(norms[r].replicated) !=
        std::bit_cast<std::uint64_t>(norms[0].replicated))
      throw invalid_argument(
          joined("ferry::", verb,
                 ": gradients without a sharded_plan must be equal on all ranks, but their norm is ",
                 norms[0].replicated, " on rank 0 and ", norms[r].replicated, " on rank ", r,
                 "; call all_reduce first"));
  }
  kernels::add_square(total, own_norm.replicated);
  return total;
}

/// The group of the first sharded plan.
template <class First, class... Rest>
const communicator& group_of_plans(const First& first, const Rest&... rest) {
  if constexpr (is_over_ranks<First>)
    return first.plan.storage().comm;
  else
    return group_of_plans(rest...);
}

/// Adds an argument to what the ranks compare.
template <class Grads>
void add_gradients(call_note& note, const Grads& grads) {
  const auto array = make_ref(gradients_in(grads));
  using value = std::remove_const_t<typename std::remove_cvref_t<decltype(array)>::value_type>;
  note.add_hidden(note_part::types, typeid(value).hash_code());
  note.add_hidden(note_part::values, array.width());
  if constexpr (is_over_ranks<Grads>) note.add(", plan").add_number(grads.plan.storage().number);
}

/// grad_norm, and with a max_norm >= 0 clip_grad_norm.
template <bool Clips, class Exec, class... Grads>
optim::grad_total total_over_ranks(const char* verb, const Exec& exec, double max_norm, Grads&... grads) {
  call_note note(verb);
  note.add_hidden(note_part::options, std::bit_cast<std::uint64_t>(max_norm));
  (add_gradients(note, std::as_const(grads)), ...);
  collective ranks(group_of_plans(grads...), note);
  const kernels::square_ranges sum =
      ranks.guarded([&] { return squares_over_ranks(ranks, verb, exec, std::as_const(grads)...); });
  launch_context<Exec> call(exec, verb);
  norm_job<Exec> job(call);
  job.begin(sum);
  if constexpr (Clips) {
    const auto enter = [&](auto& part) {
      require_mutable<std::remove_reference_t<decltype(gradients_in(part))>>();
      call.writes_to(make_ref(gradients_in(part)));
    };
    (enter(grads), ...);
  }
  job.limit(max_norm);
  if constexpr (Clips) (job.scale(grads), ...);
  return job.finish();
}

}  // namespace ferry::detail

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
