// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>

namespace ferry::kernels {

/// Times the work of an exchange between two kernels of one instance.
template <class Backend>
struct begin_time {
  std::uint64_t* begun;
  KOKKOS_FUNCTION void operator()(std::int64_t) const { *begun = Backend::clock_in_kernel(); }
};
template <class Backend>
struct add_time {
  const std::uint64_t* begun;
  std::uint64_t* sum;
  KOKKOS_FUNCTION void operator()(std::int64_t) const {
    const std::uint64_t now = Backend::clock_in_kernel();
    if (now > *begun) Kokkos::atomic_add(sum, now - *begun);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Enqueues work() on an instance, and adds the time that it takes to that of the exchanges.
template <class Exec, class Work>
void timed(const Exec& exec, const std::string& label, const row_cache& cache, bool on_side_instance,
           const Work& work) {
  using backend = execution_backend<Exec>;
  std::uint64_t* const sum = cache.memory.book.tallies + std::int64_t{2} * tally_room + 1;
  std::uint64_t* const begun = sum + (on_side_instance ? 2 : 1);
  launch(exec, label, 1, kernels::begin_time<backend>{begun});
  work();
  launch(exec, label, 1, kernels::add_time<backend>{begun, sum});
}

}  // namespace ferry::detail
