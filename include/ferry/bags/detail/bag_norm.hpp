// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/bag_row_counts.hpp>
#include <ferry/bags/detail/share_values.hpp>
#include <ferry/error.hpp>
#include <ferry/optim/detail/measure_norm.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::optim {

template <class Offsets, class Grads, class Extra, class Pooling>
struct bag_grads;

}  // namespace ferry::optim

/// The norm of the gradients that bags hand to rows, without a gradient for each position.
namespace ferry::kernels {

/// Squares of the combined gradients of a plan's unique rows, as combined_squares, from the gradients of
/// bags. `Chosen` is void, or the type of the positions of maxima: a column's gradient goes to that position.
template <class T, class Chosen>
struct bag_squares {
  using sum_type = square_ranges;

  const T* values;
  std::int64_t stride;
  detail::fast_divisor width;
  std::int64_t count;
  const std::int64_t* order;
  const std::int64_t* segment_begin;
  const std::int64_t* unique_count;
  const std::int64_t* rows;  ///< of each place: its bag
  const double* factors;     ///< of each place; null: 1
  const Chosen* chosen;
  std::int64_t chosen_stride;

  KOKKOS_FUNCTION void add(sum_type& sum, std::int64_t i) const {
    const std::int64_t segment = width.quotient(i);
    if (segment >= *unique_count) return;
    const std::int64_t column = i - segment * width.divisor();
    double combined = 0.0;
    for (std::int64_t k = segment_begin[segment]; k < segment_begin[segment + 1]; ++k) {
      const std::int64_t bag = rows[k];
      if constexpr (!std::is_void_v<Chosen>)
        if (static_cast<std::int64_t>(chosen[bag * chosen_stride + column]) != order[k]) continue;
      const auto value = convert<double>(values[bag * stride + column]);
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
    kernels::bag_squares<value, chosen> squares{array.data,
                                                array.row_stride(),
                                                fast_divisor(array.width()),
                                                count(grads, array),
                                                plan.order,
                                                plan.segment_begin,
                                                plan.unique_count,
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
    launch_places<weighs>(call, label, plan, bags, {}, grads.extra, sizes, Pooling::divides, rows, factors);
    return squares;
  }
};

}  // namespace ferry::detail
