// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// In which order the ranks of a ferry::sharded_table sum the values of a row that several positions name. Of
/// its scatter_add and step.
namespace ferry::reduce {

/// The default: in the order (rank, position), so the sum has the same bits for every number of ranks. Every
/// position's values travel to the owner of its row.
struct in_order {
  /// Facts about the policy, see ferry::ReducePolicy.
  /// @{
  using policy_category = reduce_category;
  static constexpr std::string_view name = "reduce::in_order";
  static constexpr bool sums_locally = false;
  /// @}
};
static_assert(ReducePolicy<in_order>);

/// Each rank sums its own batch first, in the order of its positions, then the owner adds the sums in the
/// order of the ranks. One row travels for each different row of a rank's batch, in the accumulation type of
/// the values (float for 16-bit formats, 64 bits for integers). Deterministic: the bits depend on how the
/// positions are distributed over the ranks, but not on sharding, threads or transport.
struct by_rank {
  /// Facts about the policy, see ferry::ReducePolicy.
  /// @{
  using policy_category = reduce_category;
  static constexpr std::string_view name = "reduce::by_rank";
  static constexpr bool sums_locally = true;
  /// @}
};
static_assert(ReducePolicy<by_rank>);

}  // namespace ferry::reduce
