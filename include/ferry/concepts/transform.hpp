// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {
struct any_array {
  template <class Array>
  void operator()(const Array&) const {}
};

/// The calls of kernels; see optim::transform_defaults. A sum of squares may come with its unit.
/// @{
template <class Kernel, class Compute>
concept ClipsNorm = requires(const Kernel& kernel, const Compute& sum) {
  kernel.gradient_factor(sum, sum);
}
|| requires(const Kernel& kernel, const Compute& sum) { kernel.gradient_factor(sum); };
template <class Kernel, class Compute>
concept LimitsNorm = requires(const Kernel& kernel, const Compute& sum) {
  kernel.weight_factor(sum, sum);
}
|| requires(const Kernel& kernel, const Compute& sum) { kernel.weight_factor(sum); };
template <class Kernel, class Compute>
concept TransformKernel = requires(const Kernel& kernel, const Compute& number, std::int64_t row) {
  { Kernel::allows_catch_up } -> std::convertible_to<bool>;
  { kernel.takes(row) } -> std::convertible_to<bool>;
  { kernel.gradient(number) } -> std::convertible_to<Compute>;
  { kernel.changed(number, number, row) } -> std::convertible_to<Compute>;
  requires !Kernel::clips_norm || ClipsNorm<Kernel, Compute>;
  requires !Kernel::limits_norm || LimitsNorm<Kernel, Compute>;
};
/// @}

template <class T, class Compute>
using kernel_of = std::remove_cvref_t<decltype(std::declval<const T&>().template device_part<Compute>())>;
template <class T>
concept HasKernels = TransformKernel < kernel_of<T, float>,
float > &&TransformKernel<kernel_of<T, double>, double>;
}  // namespace detail

/// A transform of an optimizer's step: it changes gradients before the rule, changes weights after it, or
/// leaves rows out. See optim::chain.
///
///   name                    text for messages
///   check()                 throws invalid_argument for an option outside of its range
///   check_in_float()        optional: throws for an option that float can't hold
///   device_part<Compute>()  the part for kernels: an optim::transform_defaults with some members hidden, for
///                           Compute float and double
///   for_each_array(check)   calls check(array) for the array that the kernels read, if there is one
///   memory_space            where that array lies; only for transforms with an array
template <class T>
concept Transform = std::is_copy_constructible_v<T> && requires(const T& transform) {
  { T::name } -> std::convertible_to<std::string_view>;
  transform.check();
  transform.template device_part<float>();
  transform.template device_part<double>();
  transform.for_each_array(detail::any_array{});
  requires detail::HasKernels<T>;
};

}  // namespace ferry
