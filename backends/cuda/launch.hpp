#pragma once

#include <Kokkos_Core.hpp>

#include <utility>

namespace ferry::cuda {

/// How Kokkos hands functors to kernels. It puts those of 512 bytes and more, its own wrapping included, into
/// a buffer of the device that all kernels share: the host then waits for the kernel that used the buffer
/// last, and a graph can't repeat it.
struct launch_functions {
  /// The policy with the hint by which Kokkos passes functors of up to 4 KB as the kernel's argument.
  template <class Policy>
  using by_argument = decltype(Kokkos::Experimental::require(
      std::declval<Policy>(), Kokkos::Experimental::WorkItemProperty::HintLightWeight));

  /// Whether Kokkos does so with this functor: the size that counts is that of what it wraps around it.
  template <class Functor, class Policy>
  static consteval bool launches_by_argument() {
    using wrapped = Kokkos::Impl::ParallelFor<Functor, Policy, Kokkos::Cuda>;
    return Kokkos::Impl::DeduceCudaLaunchMechanism<wrapped>::launch_mechanism ==
           Kokkos::Impl::Experimental::CudaLaunchMechanism::LocalMemory;
  }
};

}  // namespace ferry::cuda
