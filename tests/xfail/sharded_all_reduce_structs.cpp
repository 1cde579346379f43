// SPDX-License-Identifier: Apache-2.0
// Structs can be moved, but not added.
// expected-error: all_reduce adds, so the elements must be numbers
#include <ferry/distributed.hpp>

struct pair_of_numbers {
  float first, second;
};

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec, const ferry::communicator& comm,
             [[maybe_unused]] ferry::tensor<pair_of_numbers, ferry::mapped_space>& pairs,
             [[maybe_unused]] ferry::tensor<float, ferry::mapped_space>& numbers) {
#ifdef FERRY_XFAIL_FIXED
  ferry::all_reduce(exec, comm, numbers).wait();
#else
  ferry::all_reduce(exec, comm, pairs).wait();
#endif
}
