// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formulas.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>

/// Counting wrong elements, by kernels of their own that share no code with ferry's.
namespace ferry_bench {

/// out(p, c) must be what the table's formula gives for (rows[p], c).
struct wrong_gathered {
  const float* out;
  const std::int64_t* rows;
  element_value expected;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t position = i / expected.width;
    const std::int64_t column = i % expected.width;
    if (out[i] != expected(rows[position], column)) ++wrong;
  }
};

/// table(rows[p], c) must be what the batch's formula gives for (winner[p], c): the position whose values
/// stay.
struct wrong_scattered {
  const float* table;
  const std::int64_t* rows;
  const std::int64_t* winner;
  element_value expected;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t position = i / expected.width;
    const std::int64_t column = i % expected.width;
    if (table[rows[position] * expected.width + column] != expected(winner[position], column)) ++wrong;
  }
};

/// Elements that are no longer the formula's.
struct changed_elements {
  const float* table;
  element_value expected;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& changed) const {
    if (table[i] != expected(i / expected.width, i % expected.width)) ++changed;
  }
};

/// Elements in which two arrays differ.
struct different_elements {
  const float* first;
  const float* second;
  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    if (first[i] != second[i]) ++wrong;
  }
};

/// The sum of `functor(i, sum)` over i in [0, count).
template <class Exec, class Functor>
std::int64_t count_of(const Exec& exec, const std::string& label, std::int64_t count,
                      const Functor& functor) {
  std::int64_t sum = 0;
  Kokkos::parallel_reduce(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, count),
                          functor, sum);
  exec.fence(label);
  return sum;
}

}  // namespace ferry_bench
