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

/// What stands around an optimizer's rule: a transform that changes gradients before it or weights after it, or leaves rows
/// out. `device_part<Compute>()` gives its part that runs in kernels, an optim::transform_defaults with some of its members
/// hidden; `for_each_array(check)` calls check(array) for the array that this part reads, if
/// any, which lies in the transform's memory_space.
template <class T>
concept Transform = std::is_copy_constructible_v<T> && requires(const T& transform) {
  { T::name } -> std::convertible_to<std::string_view>;
  transform.check();
  transform.template device_part<float>();
  transform.template device_part<double>();
  transform.for_each_array(detail::any_array{});
};

}  // namespace ferry
