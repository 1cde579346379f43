// SPDX-License-Identifier: Apache-2.0
// Ranks exchange bytes.
// expected-error: concatenate moves rows as they are, so parts and whole must have the same element type
#include <ferry/distributed.hpp>

#ifdef FERRY_XFAIL_FIXED
using part_type = ferry::tensor<float, ferry::mapped_space>;
#else
using part_type = ferry::tensor<double, ferry::mapped_space>;
#endif

void refused(const Kokkos::DefaultExecutionSpace& exec, const ferry::communicator& comm,
             const ferry::tensor<float, ferry::mapped_space>& batch, part_type& whole) {
  ferry::concatenate(exec, comm, batch, whole).wait();
}
