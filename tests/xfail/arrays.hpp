// SPDX-License-Identifier: Apache-2.0
// The arrays that refused programs name. Nothing defines them: the programs are not linked.
#pragma once

#include <ferry/ferry.hpp>

#include <cstdint>
#include <vector>

extern const Kokkos::DefaultExecutionSpace exec;
extern ferry::tensor<float, ferry::mapped_space> table, second;
extern ferry::tensor<float, ferry::device_space> batch, pooled, device_table;
extern const std::vector<std::int64_t> indices, offsets;
extern const ferry::optim::adam rule;
extern decltype(ferry::optim::make_state(rule, table)) state;

/// Rows of structs, of integers, and of numbers of 8 bits.
struct two_numbers {
  float a, b;
};
extern ferry::tensor<two_numbers, ferry::device_space> structs;
extern ferry::tensor<std::int32_t, ferry::mapped_space> integers;
extern ferry::tensor<ferry::fp8_e4m3_t, ferry::mapped_space> codes;
