#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace ferry::detail {

/// One worker of a crew. Host code only; an exception is kept until all workers have ended.
struct crew_member {
  const std::function<void(int)>* work;
  std::exception_ptr* errors;

  void operator()(int worker) const {
    try {
      (*work)(worker);
    } catch (...) {
      errors[worker] = std::current_exception();
    }
  }
};

/// Whether the caller is one of several threads already: then all of a crew would be this one thread.
inline bool among_threads() {
#if defined(_OPENMP)
  return omp_in_parallel() != 0;
#else
  return false;
#endif
}

/// The number of workers that `host` has for a crew of at most `wanted`.
template <class Host>
int crew_size(const Host& host, int wanted) {
  if (among_threads()) return 1;
  return std::max(1, std::min(wanted, static_cast<int>(host.concurrency())));
}

/// Calls work(worker) for each worker in [0, workers), each in a thread of its own as far as `host` has as many,
/// and returns when all have ended. So no worker may wait for another one to begin. Rethrows the first error.
template <class Host>
void run_crew(const Host& host, const std::string& label, int workers, const std::function<void(int)>& work) {
  if (workers <= 1) return work(0);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(workers));
  using range = Kokkos::RangePolicy<Host, Kokkos::Schedule<Kokkos::Static>, Kokkos::IndexType<int>>;
  Kokkos::parallel_for(label, range(host, 0, workers, Kokkos::ChunkSize(1)),
                       crew_member{&work, errors.data()});
  host.fence(label);
  for (const auto& error : errors)
    if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace ferry::detail
