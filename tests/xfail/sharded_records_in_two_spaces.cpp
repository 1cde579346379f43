// SPDX-License-Identifier: Apache-2.0
// A record lies in one memory space, also in a shard.
// expected-error: rows with their scales in records are those of quantization::rowwise_int8, whose table has one memory space
#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

void refused() {
  using ferry::quantization::rowwise_int8;
  const auto comm = ferry::communicator::threads(2);
#ifdef FERRY_XFAIL_FIXED
  const ferry::sharded_quantized_table<rowwise_int8, ferry::pageable_space> table("table", comm, 10, 32);
#else
  const ferry::sharded_quantized_table<rowwise_int8, ferry::pageable_space, ferry::mapped_space> table(
      "table", comm, 10, 32);
#endif
}
