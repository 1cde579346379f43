// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <utility>

namespace ferry::cuda {

/// How Kokkos passes functors to kernels. Functors of 512 bytes and more, with Kokkos' wrapper, go through a
/// device buffer that all kernels share. The host then waits for the last kernel that used the buffer, and a
/// graph can't repeat it.
struct launch_functions {
  /// The policy with the hint by which Kokkos passes functors of up to 4 KB as a kernel argument.
  template <class Policy>
  using by_argument = decltype(Kokkos::Experimental::require(
      std::declval<Policy>(), Kokkos::Experimental::WorkItemProperty::HintLightWeight));

  /// True if Kokkos does so with this functor. The size of the wrapped functor counts.
  template <class Functor, class Policy>
  static consteval bool launches_by_argument() {
    using wrapped = Kokkos::Impl::ParallelFor<Functor, Policy, Kokkos::Cuda>;
    return Kokkos::Impl::DeduceCudaLaunchMechanism<wrapped>::launch_mechanism ==
           Kokkos::Impl::Experimental::CudaLaunchMechanism::LocalMemory;
  }
};

}  // namespace ferry::cuda
