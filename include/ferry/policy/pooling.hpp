// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// How gather_bags makes one row of the rows of a bag, and step_bags hands its gradient on. Names and meaning
/// are those of the modes of torch.nn.EmbeddingBag.
namespace ferry::pooling {

namespace detail {
/// The facts of most of these policies; each states its name and those that differ.
struct facts {
  using policy_category = pooling_category;
  static constexpr bool divides = false, selects = false;
};
}  // namespace detail

/// The sum of the rows, each multiplied by the weight of its position if there are weights.
struct sum : detail::facts {
  static constexpr std::string_view name = "pooling::sum";  ///< see ferry::PoolingPolicy
};
static_assert(PoolingPolicy<sum>);

/// The default: the sum divided by the number of rows, not by the sum of their weights. Integers round
/// towards zero.
struct mean : detail::facts {
  static constexpr std::string_view name = "pooling::mean";  ///< see ferry::PoolingPolicy
  static constexpr bool divides = true;                      ///< see ferry::PoolingPolicy
};
static_assert(PoolingPolicy<mean>);

/// The largest element of each column. Of equal ones the first is the largest, and it alone gets the
/// gradient. A NaN is the largest where it comes first in its bag, else it is passed over.
struct max : detail::facts {
  static constexpr std::string_view name = "pooling::max";  ///< see ferry::PoolingPolicy
  static constexpr bool selects = true;                     ///< see ferry::PoolingPolicy
};
static_assert(PoolingPolicy<max>);

}  // namespace ferry::pooling
