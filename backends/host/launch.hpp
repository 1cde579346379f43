// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry::host {

/// Functors are called in place.
struct launch_functions {
  template <class Policy>
  using by_argument = Policy;
  template <class Functor, class Policy>
  static consteval bool launches_by_argument() {
    return true;
  }
};

}  // namespace ferry::host
