// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/bags/detail/share_values.hpp>
#include <ferry/concepts/policy.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/detail/measure_norm.hpp>
#include <ferry/optim/detail/square_sums.hpp>
#include <ferry/optim/grad_norm.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/pooling.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry::optim {

template <class Offsets, class Grads, class Extra, class Pooling>
struct bag_grads;

}  // namespace ferry::optim

/// The norm of the gradients that bags hand to rows, without a gradient for each position.
namespace ferry::kernels {

/// Squares of the combined gradients of a plan's unique rows, as combined_squares, from the gradients of
/// bags. `Chosen` is void, or the type of the positions of maxima: a column's gradient goes to that position.
template <class T, class Chosen>
struct bag_squares : combined_squares<T> {
  using typename combined_squares<T>::sum_type;

  const std::int64_t* rows;  ///< of each entry of the order: its bag
  const double* factors;     ///< of each entry; null: 1
  const Chosen* chosen;
  std::int64_t chosen_stride;

  KOKKOS_FUNCTION void add(sum_type& sum, std::int64_t i) const {
    const std::int64_t segment = this->width.quotient(i);
    if (segment >= *this->unique_count) return;
    const std::int64_t column = i - segment * this->width.divisor();
    double combined = 0.0;
    for (std::int64_t k = this->segment_begin[segment]; k < this->segment_begin[segment + 1]; ++k) {
      const std::int64_t bag = rows[k];
      if constexpr (!std::is_void_v<Chosen>)
        if (static_cast<std::int64_t>(chosen[bag * chosen_stride + column]) != this->order[k]) continue;
      const auto value = convert<double>(this->values[bag * this->stride + column]);
      combined += factors == nullptr ? value : value * factors[k];
    }
    add_square(sum, combined);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

template <class Offsets, class Values, class Extra, class Pooling>
struct norm_part<optim::bag_grads<Offsets, Values, Extra, Pooling>> {
  using grads_type = optim::bag_grads<Offsets, Values, Extra, Pooling>;
  using extra_element = std::remove_const_t<typename Extra::value_type>;
  static constexpr bool has_extra = !std::is_void_v<extra_element>;
  static constexpr bool weighs = has_extra && !Pooling::selects;
  static_assert(
      !Pooling::selects || has_extra,
      "ferry: under pooling::max the gradient of a column goes to the position of its maximum, so bag_grads needs these positions, as gather_bags wrote them: bag_grads(plan, offsets, pooled_grads, positions, pooling::max{}).");
  static_assert(
      !Pooling::selects || !has_extra || std::is_same_v<extra_element, std::int32_t> ||
          std::is_same_v<extra_element, std::int64_t>,
      "ferry: pooling::max takes no weights; the further array has the positions of the maxima from gather_bags, so its elements must be int32 or int64.");

  static auto& gradients(auto& grads) { return grads.grads; }
  template <class Exec>
  static void check(launch_context<Exec>& call, const grads_type& grads, const auto& array) {
    const std::int64_t positions = grads.plan.positions();
    require_norm_plan<Exec>(call.verb(), grads.plan, array);
    require_bags(call.verb(), grads.offsets, positions, array);
    if (array.rows() == 0 && positions != 0)
      throw invalid_argument(joined("ferry::", call.verb(), ": the plan has ", positions, " positions, but ",
                                    array.describe(), " has no bags"));
    require_extra<Pooling>(call.verb(), grads.extra, positions, array);
    if constexpr (Pooling::selects && has_extra) require_direct_reach(call.verb(), call.exec(), grads.extra);
  }
  static std::int64_t count(const grads_type& grads, const auto& array) {
    return grads.plan.positions() * array.width();
  }
  template <class Exec>
  static auto terms(launch_context<Exec>& call, const grads_type& grads, const auto& array) {
    using value = std::remove_const_t<typename std::remove_cvref_t<decltype(array)>::value_type>;
    using chosen = std::conditional_t<Pooling::selects, extra_element, void>;
    call.use(grads.plan.storage());
    const plan_storage& plan = *grads.plan.storage();
    const std::int64_t positions = grads.plan.positions();
    kernels::bag_squares<value, chosen> squares{
        {array.data, array.row_stride(), fast_divisor(array.width()), count(grads, array), plan.order,
         plan.segment_begin, plan.unique_count},
        nullptr,
        nullptr,
        nullptr,
        0};
    if (squares.count == 0) return squares;
    auto* rows = call.template scratch<std::int64_t>(positions);
    double* factors = weighs || Pooling::divides ? call.template scratch<double>(positions) : nullptr;
    squares.rows = rows;
    squares.factors = factors;
    const offset_type<Offsets>* offsets = nullptr;
    if constexpr (!std::is_same_v<Offsets, std::int64_t>) offsets = indices_for_kernels(call, grads.offsets);
    const auto bags = list_of_bags(grads.offsets, offsets, array.rows(), positions, true, report_writer{});
    const auto* const row_of = plan.bounds == bounds::skip::name ? plan.row_of : nullptr;
    if constexpr (Pooling::selects && has_extra) {
      call.reads_from(grads.extra);
      squares.chosen = grads.extra.data;
      squares.chosen_stride = grads.extra.row_stride();
    }
    const std::string& label = call.label("bags");
    const auto* const sizes = Pooling::divides ? bag_row_counts(call, label, bags, row_of) : nullptr;
    launch_shares<weighs>(call, label, plan, bags, {}, grads.extra, sizes, Pooling::divides, rows, factors);
    return squares;
  }
};

template <class Offsets>
using kept_offsets_t = decltype(bags_named_by(std::declval<const std::remove_cvref_t<Offsets>&>()));

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
        offsets(::ferry::detail::bags_named_by(bags)),
        grads(std::forward<Grads>(pooled_grads)),
        extra{} {
    ::ferry::detail::require_lasting_argument<Bags>();
  }
  template <class Bags, ArrayLike More>
  bag_grads(row_plan batch_plan, Bags&& bags, Grads&& pooled_grads, const More& more, Pooling = {})
      : plan(std::move(batch_plan)),
        offsets(::ferry::detail::bags_named_by(bags)),
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
