// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_norm.hpp>
#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/concepts/policy.hpp>
#include <ferry/optim/grad_norm.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/pooling.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// The offsets of bags as bag_grads keeps them: a reference, or the number of positions of each bag.
template <class Offsets>
auto kept_offsets(const Offsets& offsets) {
  if constexpr (is_hotness<Offsets>())
    return bags_named_by(offsets);
  else
    return read_only(make_ref(offsets));
}
template <class Offsets>
using kept_offsets_t = decltype(kept_offsets(std::declval<const std::remove_cvref_t<Offsets>&>()));

template <class Array>
using kept_array_t = decltype(read_only(make_ref(std::declval<const std::remove_cvref_t<Array>&>())));

/// Refuses what bag_grads would refer to after its end.
template <class Array>
consteval void require_lasting_argument() {
  if constexpr (!std::is_lvalue_reference_v<Array> && !is_hotness<Array>())
    require_lasting<std::remove_cvref_t<Array>>();
}

}  // namespace ferry::detail

namespace ferry::optim {

/// The gradient of a table whose rows were pooled by gather_bags, for grad_norm and clip_grad_norm: that of a
/// row is the sum of the shares that step_bags hands to it, and is never in memory. So the norm is that of
/// torch.nn.utils.clip_grad_norm_ after the backward pass of a torch.nn.EmbeddingBag with sparse=True.
///
///   optim::clip_grad_norm(exec, 1.0, optim::bag_grads(plan, offsets, pooled_grads, pooling::sum{}), dense);
///   step_bags(exec, adam, table, state, plan, offsets, pooled_grads, pooling::sum{}).wait();
///
///   plan          of the batch's indices, made on an execution space of the verb's type
///   offsets       as in step_bags, in memory that indices may be in
///   pooled_grads  one row of numbers for each bag; clip_grad_norm scales them, and so the shares
///   extra         optional: the weights of the positions. Of pooling::max the positions of the maxima, which
///                 it needs
///   pooling       default pooling::mean; that of the forward pass
///
/// Refers to the arrays, which must outlive the work. Bad offsets are reported by step_bags; the norm then
/// means nothing. Uses 8 or 16 bytes of scratch memory per position.
template <class Offsets, class Grads, class Extra, class Pooling>
struct bag_grads {
  static_assert(std::is_lvalue_reference_v<Grads> || ::ferry::detail::is_slice<Grads>,
                "ferry: bag_grads refers to gradients, so they can't be a temporary array; a slice may.");

  row_plan plan;    ///< of the batch's indices
  Offsets offsets;  ///< of the bags
  Grads grads;      ///< one row per bag
  Extra extra;      ///< weights of positions, or positions of maxima

  /// See above.
  /// @{
  template <class Bags>
  bag_grads(row_plan batch_plan, Bags&& bags, Grads&& pooled_grads, Pooling = {})
      : plan(std::move(batch_plan)),
        offsets(::ferry::detail::kept_offsets(bags)),
        grads(std::forward<Grads>(pooled_grads)),
        extra{} {
    ::ferry::detail::require_lasting_argument<Bags>();
  }
  template <class Bags, ArrayLike More>
  bag_grads(row_plan batch_plan, Bags&& bags, Grads&& pooled_grads, const More& more, Pooling = {})
      : plan(std::move(batch_plan)),
        offsets(::ferry::detail::kept_offsets(bags)),
        grads(std::forward<Grads>(pooled_grads)),
        extra(::ferry::detail::read_only(make_ref(more))) {
    ::ferry::detail::require_lasting_argument<Bags>();
  }
  template <class Bags, ArrayLike More>
  bag_grads(row_plan batch_plan, Bags&& bags, Grads&& pooled_grads, const More&& more, Pooling pooling = {})
      : bag_grads(std::move(batch_plan), std::forward<Bags>(bags), std::forward<Grads>(pooled_grads), more,
                  pooling) {
    ::ferry::detail::require_lasting_argument<More>();
  }
  /// @}
};

/// Deduce references, or slices.
/// @{
template <class Offsets, class Grads>
bag_grads(row_plan, Offsets&&, Grads&&)
    -> bag_grads<::ferry::detail::kept_offsets_t<Offsets>, Grads, ::ferry::detail::no_array, pooling::mean>;
template <class Offsets, class Grads, PoolingPolicy Pooling>
bag_grads(row_plan, Offsets&&, Grads&&, Pooling)
    -> bag_grads<::ferry::detail::kept_offsets_t<Offsets>, Grads, ::ferry::detail::no_array, Pooling>;
template <class Offsets, class Grads, ArrayLike Extra>
bag_grads(row_plan, Offsets&&, Grads&&, const Extra&)
    -> bag_grads<::ferry::detail::kept_offsets_t<Offsets>, Grads, ::ferry::detail::kept_array_t<Extra>,
                 pooling::mean>;
template <class Offsets, class Grads, ArrayLike Extra, PoolingPolicy Pooling>
bag_grads(row_plan, Offsets&&, Grads&&, const Extra&, Pooling)
    -> bag_grads<::ferry::detail::kept_offsets_t<Offsets>, Grads, ::ferry::detail::kept_array_t<Extra>,
                 Pooling>;
/// @}

/// Refuses arguments that do not begin with a row_plan. Does not compile.
template <class First>
struct bag_grads<void, First, void, void> {
  static_assert(
      sizeof(First) == 0,
      "ferry: bag_grads is called as bag_grads(plan, offsets, pooled_grads, pooling), with the row_plan that make_plan(exec, indices, rows) returns; for a sharded_plan give sparse_grads(plan, grads) a row of gradients for each position.");
  /// Takes what is refused.
  template <class... Rest>
  bag_grads(const First&, const Rest&...) {}
};
/// Deduces the refusal.
template <class First, class... Rest>
  requires(!std::is_convertible_v<First, row_plan>)
bag_grads(const First&, const Rest&...)
->bag_grads<void, First, void, void>;

}  // namespace ferry::optim

namespace ferry::detail {
template <class First>
inline constexpr bool is_refused<optim::bag_grads<void, First, void, void>> = true;
}  // namespace ferry::detail
