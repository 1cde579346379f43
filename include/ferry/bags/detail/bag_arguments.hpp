// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/concepts/element.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/policy/pooling.hpp>
#include <ferry/quantized/detail/record_access.hpp>
#include <ferry/quantized/detail/rowwise_int8_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

/// The arguments that the verbs on bags share.
namespace ferry::detail {

/// True if the verbs on bags of this folder take the table. A sharded table has verbs of its own.
template <class Table>
inline constexpr bool takes_bags = !is_table_object<std::remove_cvref_t<Table>> || HasRowAccess<Table>;

/// The table as checks and kernels take it: 8-bit rows are rows of bytes.
template <class Table>
auto rows_to_pool(Table& table) {
  if constexpr (is_codes<std::remove_const_t<Table>>)
    return codes_of(table);
  else
    return make_ref(table);
}
template <class Table>
consteval auto checked_as() {
  if constexpr (HasRowAccess<Table>)
    return std::type_identity<typename table_access<std::remove_cvref_t<Table>>::checked>{};
  else if constexpr (is_codes<std::remove_cvref_t<Table>>)
    return std::type_identity<tensor<std::byte, typename std::remove_cvref_t<Table>::memory_space>>{};
  else
    return std::type_identity<std::remove_cvref_t<Table>>{};
}
template <class Table>
using checked_table = typename decltype(checked_as<Table>())::type;

template <class Done, class... Rest>
struct drop_pooling;
template <class... Done>
struct drop_pooling<policies<Done...>> {
  using type = policies<Done...>;
};
template <class... Done, class P, class... Rest>
struct drop_pooling<policies<Done...>, P, Rest...>
    : std::conditional_t<in_category<P, pooling_category>, drop_pooling<policies<Done...>, Rest...>,
                         drop_pooling<policies<Done..., P>, Rest...>> {};

template <class List>
struct split_policies;
template <class... Ps>
struct split_policies<policies<Ps...>> {
  using others = typename drop_pooling<policies<>, Ps...>::type;
  static constexpr int poolings = policy_facts<policies<Ps...>>::template count<pooling_category>;
};

/// The policies of a call on bags: `pooling`, and in `chosen` those that verbs on rows know.
template <class... Ps>
struct bag_policies {
  using list = policy_list<Ps...>;
  using split = split_policies<list>;
  using pooling = typename select<list, pooling_category, ferry::pooling::mean>::type;
  using others = typename split::others;
  using chosen = chosen_policies<others>;
  static_assert(split::poolings <= 1, "ferry: at most one pooling policy may be given.");
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
    return std::cmp_greater(offsets, std::numeric_limits<std::int64_t>::max())
               ? std::numeric_limits<std::int64_t>::max()
               : static_cast<std::int64_t>(offsets);
  else
    return make_ref(offsets);
}

/// Checks that the offsets describe as many bags as the array of bags has rows.
template <class Named>
void require_bags(const char* verb, const Named& named, std::int64_t positions, const auto& pooled) {
  const std::int64_t bags = pooled.rows();
  if constexpr (std::is_same_v<Named, std::int64_t>) {
    const bool fits = named >= 0 && (bags == 0 || named <= positions / bags) && bags * named == positions;
    if (!fits)
      throw invalid_argument(std::string("ferry::") + verb + ": " + std::to_string(positions) +
                             " indices were given for the " + std::to_string(bags) + " bags of " +
                             std::to_string(named) + " positions of " + pooled.describe());
  } else {
    require_rank_one(verb, named, "offsets");
    if (named.rows() != bags && named.rows() != bags + 1)
      throw invalid_argument(
          std::string("ferry::") + verb + ": " + std::to_string(named.rows()) +
          " offsets were given for the " + std::to_string(bags) + " bags of " + pooled.describe() +
          ", must be one for each bag, with or without one more for the last end; or a plain integer, the positions of every bag");
    if (bags == 0 && named.rows() == 0 && positions != 0)
      throw invalid_argument(std::string("ferry::") + verb + ": " + std::to_string(positions) +
                             " indices were given, but " + pooled.describe() + " has no bags");
  }
}

/// Checks the weights of the positions, or their gradients.
inline void require_weights(const char* verb, const auto& weights, std::int64_t positions) {
  require_rank_one(verb, weights, "weights");
  if (weights.rows() != positions)
    throw invalid_argument(std::string("ferry::") + verb + ": " + weights.describe() + " has " +
                           std::to_string(weights.rows()) + " weights for " + std::to_string(positions) +
                           " indices");
}

/// Checks the array that has the position of each maximum.
inline void require_chosen(const char* verb, const auto& chosen, const auto& pooled) {
  require_dense_rows(verb, chosen);
  if (chosen.rows() != pooled.rows() || chosen.width() != pooled.width())
    throw invalid_argument(std::string("ferry::") + verb + ": the positions of the maxima " +
                           chosen.describe() + " need the extents of " + pooled.describe());
}

template <class Named>
struct offset_of {
  using type = std::remove_const_t<typename Named::value_type>;
};
template <>
struct offset_of<std::int64_t> {
  using type = std::int64_t;
};
template <class Named>
using offset_type = typename offset_of<std::remove_cvref_t<Named>>::type;

template <class Named>
kernels::bag_list<offset_type<Named>> list_of_bags(const Named& named, const offset_type<Named>* offsets,
                                                   std::int64_t bags, std::int64_t positions, bool checks,
                                                   const report_writer& report) {
  if constexpr (std::is_same_v<Named, std::int64_t>)
    return {nullptr, named, bags, positions, false, false, report};
  else
    return {offsets, 0, bags, positions, named.rows() == bags, checks, report};
}

/// The bags for kernels of the verb's execution space, or for those of the host.
template <bool OnHost = false, class Exec, class Named>
auto bags_for_kernels(launch_context<Exec>& call, const Named& named, std::int64_t bags,
                      std::int64_t positions, bool checks) {
  const offset_type<Named>* offsets = nullptr;
  report_writer report{};
  if constexpr (!std::is_same_v<Named, std::int64_t>) {
    if constexpr (OnHost)
      offsets = indices_for_host(call, named);
    else
      offsets = indices_for_kernels(call, named);
    if (checks) report = OnHost ? call.host_report() : call.report();
  }
  return list_of_bags(named, offsets, bags, positions, checks, report);
}

/// Of gather_bags' further array: weights, or under pooling::max where the positions of the maxima go.
template <class Exec, class Pooling, class Extra>
consteval void require_bag_extra() {
  require_rows<Extra>();
  require_reach<Exec, Extra>();
  using element = typename decltype(make_ref(std::declval<Extra&>()))::value_type;
  if constexpr (Pooling::selects) {
    static_assert(
        std::is_same_v<element, std::int32_t> || std::is_same_v<element, std::int64_t>,
        "ferry: pooling::max takes no weights; the further array receives the positions of the maxima, so its elements must be int32 or int64.");
    require_output<Extra>();
  } else {
    static_assert(NumberElement<std::remove_const_t<element>>,
                  "ferry: the weights of positions must be numbers.");
  }
}

}  // namespace ferry::detail
