// SPDX-License-Identifier: Apache-2.0
// A sharded table has elements; codes and scales are two of them.
// expected-error: the first argument of a sharded_table is the type of its elements
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
#ifdef FERRY_XFAIL_FIXED
  using element = ferry::quantization::mxfp8::code_type;
#else
  using element = ferry::quantization::mxfp8;
#endif
  const ferry::sharded_table<element, ferry::pageable_space> table("table", ferry::communicator::threads(2),
                                                                   10, 32);
}
