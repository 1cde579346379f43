// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.hpp"
#include "formulas.hpp"
#include "measure.hpp"
#include "session.hpp"
#include "tables.hpp"
#include "traffic.hpp"

#include <ferry/ferry.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// Parts of the cases of copy: filled arrays, and the check of every element.
namespace ferry_bench {

/// Counts the elements of row-major memory that are not the formula's, where they lie.
template <class Array>
std::int64_t wrong_elements(const session& run, const Array& array, const element_value& expected) {
  using space = typename Array::memory_space;
  const auto size = static_cast<std::int64_t>(array.size());
  const changed_elements wrong{array.data(), expected};
  if constexpr (std::is_same_v<space, ferry::pageable_space>)
    return count_of(Kokkos::DefaultHostExecutionSpace{}, "ferry_bench::check", size, wrong);
  else
    return count_of(run.exec(), "ferry_bench::check", size, wrong);
}

/// Times copy(call), which moves `bytes` bytes into `to`, and checks the formula there after a copy onto poison.
template <class To, class Copy>
figure time_copy(session& run, const std::string& name, facts setting, To& target, double bytes,
                 const traffic& moved, const element_value& expected, const Copy& copy) {
  figure result;
  result.name = name;
  result.setting = std::move(setting);
  result.bytes = bytes * moved.factor;
  result.counts = moved.counts;
  if (!moved.ceiling.empty()) result.ceiling = run.ceiling(moved.ceiling);
  result.time = measure(run, 1, copy);
  ferry::init::constant(run.exec(), target, -1.0F);
  copy(0).wait();
  conclude(run, result, wrong_elements(run, target, expected));
  return result;
}

}  // namespace ferry_bench
