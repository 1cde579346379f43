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

/// What stands around an optimizer's rule: a stage that changes gradients before it or weights after it, or leaves rows
/// out. `at_work<Compute>()` gives its part that runs in kernels, an optim::stage_defaults with some of its members
/// hidden; `reach(check)` calls check(array) for the array that this part reads, if
/// any, which lies in the stage's memory_space.
template <class T>
concept Stage = std::is_copy_constructible_v<T> && requires(const T& stage) {
  { T::name } -> std::convertible_to<std::string_view>;
  stage.check();
  stage.template at_work<float>();
  stage.template at_work<double>();
  stage.reach(detail::any_array{});
};

}  // namespace ferry
