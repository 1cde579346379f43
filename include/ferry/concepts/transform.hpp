// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

namespace ferry {

namespace detail {
struct any_array {
  template <class Array>
  void operator()(const Array&) const {}
};
}  // namespace detail

/// A transform of an optimizer's step: it changes gradients before the rule, changes weights after it, or
/// leaves rows out. See optim::chain.
///
///   name                    text for messages
///   check()                 throws invalid_argument for an option outside of its range
///   check_in_float()        optional: throws for an option that float can't hold
///   device_part<Compute>()  the part for kernels: an optim::transform_defaults with some members hidden
///   for_each_array(check)   calls check(array) for the array that the kernels read, if there is one
///   memory_space            where that array lies; only for transforms with an array
template <class T>
concept Transform = std::is_copy_constructible_v<T> && requires(const T& transform) {
  { T::name } -> std::convertible_to<std::string_view>;
  transform.check();
  transform.template device_part<float>();
  transform.template device_part<double>();
  transform.for_each_array(detail::any_array{});
};

}  // namespace ferry
