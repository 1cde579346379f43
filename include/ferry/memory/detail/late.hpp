// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry::detail {

template <class T, class Dependent>
struct late_type {
  using type = T;
};

/// T. In a template with the parameter `Dependent` a compiler does not look into expressions of this type
/// before it instantiates the template: what nobody calls costs little more than its text. Without it the
/// functions and containers that the template uses would be looked up, and instantiated, in every source.
template <class T, class Dependent>
using late = typename late_type<T, Dependent>::type;

}  // namespace ferry::detail
