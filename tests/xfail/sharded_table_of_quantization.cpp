// SPDX-License-Identifier: Apache-2.0
// A sharded table has elements; rows of codes and scales have a table of their own.
// expected-error: quantized rows are spread as a sharded_quantized_table
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  using q = ferry::quantization::mxfp8;
  const auto comm = ferry::communicator::threads(2);
#ifdef FERRY_XFAIL_FIXED
  const ferry::sharded_quantized_table<q, ferry::pageable_space> table("table", comm, 10, 32);
#else
  const ferry::sharded_table<q, ferry::pageable_space> table("table", comm, 10, 32);
#endif
}
