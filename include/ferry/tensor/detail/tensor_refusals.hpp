// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <type_traits>

/// The sentences for arguments that constructors can't take, where a compiler would list the constructors.
namespace ferry::detail {

/// True if the arguments of a tensor begin with a number, or a label is followed by a number that is no
/// integer.
template <class First, class... Rest>
consteval bool is_refused_tensor() {
  if constexpr (std::is_arithmetic_v<First>)
    return true;
  else if constexpr (std::is_convertible_v<const First&, std::string_view>)
    return (std::is_floating_point_v<Rest> || ...);
  else
    return false;
}

/// `Arguments` are those of the constructor.
template <class First, class... Arguments>
consteval void refuse_tensor() {
  static_assert(
      !std::is_arithmetic_v<First>,
      "ferry: the first argument of a tensor is its label, which messages and statistics name: tensor<T, Space>(\"weights\", rows, width).");
  static_assert(std::is_arithmetic_v<First>,
                "ferry: the extents of a tensor are integers: tensor<T, Space>(\"weights\", rows, width).");
}

}  // namespace ferry::detail
