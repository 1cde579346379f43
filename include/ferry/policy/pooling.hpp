// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// How gather_bags makes one row of the rows of a bag, and step_bags hands its gradient on. Names and meaning
/// are those of the modes of torch.nn.EmbeddingBag.
namespace ferry::pooling {

/// The sum of the rows, each multiplied by the weight of its position if there are weights.
struct sum {
  /// Facts about the policy, see ferry::PoolingPolicy.
  /// @{
  using policy_category = pooling_category;
  static constexpr std::string_view name = "pooling::sum";
  static constexpr bool divides = false, selects = false;
  /// @}
};
static_assert(PoolingPolicy<sum>);

/// The default: the sum divided by the number of rows, not by the sum of their weights. Integers round
/// towards zero.
struct mean {
  /// Facts about the policy, see ferry::PoolingPolicy.
  /// @{
  using policy_category = pooling_category;
  static constexpr std::string_view name = "pooling::mean";
  static constexpr bool divides = true, selects = false;
  /// @}
};
static_assert(PoolingPolicy<mean>);

/// The largest element of each column. Of equal ones the first is the largest, and it alone gets the
/// gradient. A NaN is the largest where it comes first in its bag, else it is passed over.
struct max {
  /// Facts about the policy, see ferry::PoolingPolicy.
  /// @{
  using policy_category = pooling_category;
  static constexpr std::string_view name = "pooling::max";
  static constexpr bool divides = false, selects = true;
  /// @}
};
static_assert(PoolingPolicy<max>);

}  // namespace ferry::pooling
