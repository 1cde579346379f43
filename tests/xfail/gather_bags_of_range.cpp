// SPDX-License-Identifier: Apache-2.0
// Several tables come in a list.
// expected-errors: 3 a range of tables is no table: gather_bags and step_bags take one as for_each_table
// most-lines: 40
#include <ferry/bags.hpp>
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <cstdint>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  using table_type = ferry::tensor<float, ferry::mapped_space>;
  using quantized = ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space>;
  std::vector<table_type> tables(2);
  [[maybe_unused]] std::vector<quantized> codes;
  const std::vector<std::int64_t> indices{1, 2, 3}, offsets{0, 2, 3};
  ferry::tensor<float, ferry::device_space> pooled("pooled", 1, 8);
  const ferry::optim::adam rule;
  std::vector<decltype(ferry::optim::make_state(rule, tables[0]))> states;
#ifdef FERRY_XFAIL_FIXED
  ferry::gather_bags(exec, ferry::for_each_table(tables), indices, offsets, pooled).wait();
  ferry::step_bags(exec, rule, ferry::for_each_table(tables), states, indices, offsets, pooled).wait();
#else
  ferry::gather_bags(exec, tables, indices, offsets, pooled).wait();
  ferry::gather_bags(exec, codes, indices, offsets, pooled).wait();
  ferry::step_bags(exec, rule, tables, states, indices, offsets, pooled).wait();
#endif
}
