// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "several_devices.hpp"

#include <ferry/concepts/execution_space.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace ferry::kokkos {

/// An item of launch_each. The device knows how many there are, if the functor asks it.
template <class Functor>
struct each_item {
  Functor functor;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if constexpr (requires { functor.work_items(); })
      if (i >= static_cast<std::int64_t>(functor.work_items())) return;
    functor(i);
  }
};

struct launch_functions {
  /// The policy with the hint by which Kokkos passes functors of up to 4 KB as a kernel argument.
  template <class Policy>
  using by_argument = decltype(Kokkos::Experimental::require(
      std::declval<Policy>(), Kokkos::Experimental::WorkItemProperty::HintLightWeight));

  /// How Kokkos passes a functor is its own choice.
  template <class Functor, class Policy>
  static consteval bool launches_by_argument() {
    return true;
  }

  /// Enqueues functor(i) for each i in [0, count).
  template <ExecutionSpace Exec, class Functor, class... Bounds>
  static void launch_range(const Exec& exec, const std::string& label, std::int64_t count,
                           const Functor& functor) {
    using range = by_argument<Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>, Bounds...>>;
    const auto lock = detail::lock_shortly(launch_guard());
    Kokkos::parallel_for(label, range(exec, 0, count), functor);
  }
  template <ExecutionSpace Exec, class Functor>
  static void launch_each(const Exec& exec, const std::string& label, std::int64_t count,
                          const Functor& functor) {
    launch_range<Exec, each_item<Functor>,
                 Kokkos::LaunchBounds<Functor::most_threads, Functor::blocks_at_once>>(
        exec, label, count, each_item<Functor>{functor});
  }
};

}  // namespace ferry::kokkos
