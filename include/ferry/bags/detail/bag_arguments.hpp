// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/concepts/element.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/policy/pooling.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

/// The arguments that the verbs on bags share.
namespace ferry::detail {

/// True if the verbs of this folder on bags of one table take it. A sharded table has verbs of its own.
template <class Table>
inline constexpr bool takes_bags = (!is_table_object<std::remove_cvref_t<Table>> ||
                                    HasRowAccess<Table>)&&!is_table_list<std::remove_cvref_t<Table>>;

/// The policies of a call on bags: `pooling`, and in `chosen` those that verbs on rows know.
template <class... Ps>
struct bag_policies {
  using asked = chosen_policies<Ps...>;
  using pooling = typename asked::template get<pooling_category, ferry::pooling::mean>;
  using chosen = typename asked::template without<pooling_category>;
  static_assert(asked::template at_most_one<pooling_category>,
                "ferry: at most one pooling policy may be given.");
};

template <class Offsets>
consteval bool is_hotness() {
  return std::integral<std::remove_cvref_t<Offsets>> && !std::same_as<std::remove_cvref_t<Offsets>, bool>;
}

template <class Exec, class Offsets>
consteval void require_offsets() {
  if constexpr (!is_hotness<Offsets>()) {
    require_role<roles::offsets.kinds, Offsets>();
    if constexpr (is_index_argument<Offsets>()) require_reach<Exec, Offsets>();
  }
}

/// The offsets as array_ref, or the number of positions of each bag.
template <class Offsets>
auto bags_named_by(const Offsets& offsets) {
  if constexpr (is_hotness<Offsets>())
    return std::int64_t{row_number(offsets)};
  else
    return read_only(make_ref(offsets));
}

/// Checks the indices of bags.
template <class Exec, class Chosen, class Batch>
void require_bag_indices(const char* verb, const Batch& batch, const auto& table) {
  if constexpr (is_plan<Batch>) {
    require_plan<Exec, Chosen>(verb, batch, table);
  } else {
    using bounds_policy = typename Chosen::template get<bounds_category, bounds::check>;
    require_rank_one(verb, batch);
    if constexpr (std::is_same_v<bounds_policy, bounds::clamp>)
      if (table.rows() == 0 && batch.rows() > 0) refuse_to_clamp(verb, batch.rows(), table.describe());
  }
}

/// Checks that there is a bag if there are positions.
void require_a_bag(const char* verb, std::int64_t positions, const untyped_array& pooled);

/// Checks that bags of `hotness` positions each, or the offsets, describe as many bags as the array of bags
/// has rows, for each of several tables.
/// @{
void require_bags(const char* verb, std::int64_t hotness, std::int64_t positions, const untyped_array& pooled,
                  std::int64_t tables = 1);
void require_bags(const char* verb, const untyped_array& offsets, std::int64_t positions,
                  const untyped_array& pooled, std::int64_t tables = 1);
/// @}

/// Checks the tables of a verb on several of them, whose parts lie side by side in the rows of `batch`, which
/// shares no memory with them. Returns the first column of each.
std::vector<std::int64_t> columns_of_tables(const char* verb, const std::vector<untyped_array>& tables,
                                            const untyped_array& batch);

/// Checks that no two of the tables that a verb writes to share memory.
void require_separate(const char* verb, const std::vector<untyped_array>& tables);

/// Checks that there is a state for each table.
void require_states(const char* verb, std::size_t tables, std::size_t states);

/// Checks the weights of the positions, or their gradients.
void require_weights(const char* verb, const untyped_array& weights, std::int64_t positions,
                     const char* meaning = "weights");
inline constexpr const char* gradients_of_weights = "gradients of weights";  ///< that meaning

/// Checks the array of the positions of maxima.
void require_maxima(const char* verb, const untyped_array& maxima, const untyped_array& pooled);

/// For positions that do not fit into the elements of `maxima`.
[[noreturn]] void refuse_positions(const char* verb, const untyped_array& maxima, std::int64_t positions);

/// Checks the further array of a verb on bags: no_array, the weights of the positions, or if the pooling
/// selects the positions of the maxima.
template <class Pooling, class Extra>
void require_extra([[maybe_unused]] const char* verb, [[maybe_unused]] const Extra& extra,
                   [[maybe_unused]] std::int64_t positions, [[maybe_unused]] const auto& pooled) {
  if constexpr (std::is_same_v<Extra, no_array>) {
  } else if constexpr (Pooling::selects) {
    require_maxima(verb, extra, pooled);
  } else {
    require_weights(verb, extra, positions);
  }
}
/// require_extra, if the verb writes the positions of the maxima.
template <class Pooling, class Extra>
void require_extra_output(const char* verb, const Extra& extra, std::int64_t positions, const auto& pooled) {
  require_extra<Pooling>(verb, extra, positions, pooled);
  if constexpr (Pooling::selects && !std::is_same_v<Extra, no_array>)
    if (std::cmp_greater(positions, std::numeric_limits<typename Extra::value_type>::max()))
      refuse_positions(verb, extra, positions);
}

template <class Batch>
struct offset_of {
  using type = std::remove_const_t<typename Batch::value_type>;
};
template <>
struct offset_of<std::int64_t> {
  using type = std::int64_t;
};
template <class Batch>
using offset_type = typename offset_of<std::remove_cvref_t<Batch>>::type;

template <class Batch>
kernels::bag_list<offset_type<Batch>> list_of_bags(const Batch& batch, const offset_type<Batch>* offsets,
                                                   std::int64_t bags, std::int64_t positions, bool checks,
                                                   const report_writer& report) {
  if constexpr (std::is_same_v<Batch, std::int64_t>)
    return {nullptr, batch, bags, positions, false, false, report};
  else
    return {offsets, 0, bags, positions, batch.rows() == bags, checks, report};
}

/// The bags for kernels of the verb's execution space, or for those of the host.
template <bool OnHost = false, class Exec, class Batch>
auto bags_for_kernels(launch_context<Exec>& call, const Batch& batch, std::int64_t bags,
                      std::int64_t positions, bool checks) {
  const offset_type<Batch>* offsets = nullptr;
  report_writer report{};
  if constexpr (!std::is_same_v<Batch, std::int64_t>) {
    if constexpr (OnHost)
      offsets = indices_for_host(call, batch);
    else
      offsets = indices_for_kernels(call, batch);
    if (checks) report = OnHost ? call.host_report() : call.report();
  }
  return list_of_bags(batch, offsets, bags, positions, checks, report);
}

/// Checks the type of the weights of positions.
template <class Exec, class Weights>
consteval void require_weight_type() {
  require_rows<Weights>();
  require_reach<Exec, Weights>();
  static_assert(NumberElement<std::remove_const_t<typename traits_of<Weights>::value_type>>,
                "ferry: the weights of positions must be numbers.");
}

/// Checks the type of gather_bags' further array: weights, or under pooling::max the array that receives the
/// positions of the maxima.
template <class Exec, class Pooling, class Extra>
consteval void require_bag_extra() {
  if constexpr (Pooling::selects) {
    require_rows<Extra>();
    require_reach<Exec, Extra>();
    using element = typename decltype(make_ref(std::declval<Extra&>()))::value_type;
    static_assert(
        std::is_same_v<element, std::int32_t> || std::is_same_v<element, std::int64_t>,
        "ferry: pooling::max takes no weights; the further array receives the positions of the maxima, so its elements must be int32 or int64.");
    require_output<Extra>();
  } else {
    require_weight_type<Exec, Extra>();
  }
}

}  // namespace ferry::detail
