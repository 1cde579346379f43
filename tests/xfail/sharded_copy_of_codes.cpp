// SPDX-License-Identifier: Apache-2.0
// A copy moves elements as they are.
// expected-errors: 1 copy moves numbers, or codes and scales, as they are
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

using exec_space = Kokkos::DefaultExecutionSpace;
using numbers = ferry::sharded_table<float, ferry::mapped_space>;
using codes = ferry::sharded_quantized_table<ferry::quantization::mxfp8, ferry::mapped_space>;

void refused(const exec_space& exec, numbers& table, codes& quantized) {
#ifdef FERRY_XFAIL_FIXED
  ferry::quantize(exec, table, quantized).wait();
#else
  ferry::copy(exec, table, quantized).wait();
  ferry::copy(exec, quantized, table).wait();
#endif
}
