// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/finite.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Reports values that are infinite or not a number. One thread per element of each row.
template <class Value>
struct find_nonfinite {
  const Value* values;
  std::int64_t stride;
  detail::fast_divisor width;
  ferry::detail::report_writer report;

  static std::int64_t bytes_each() { return sizeof(Value); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = width.quotient(i);
    const Value value = values[row * stride + i - row * width.divisor()];
    if (!detail::is_finite(value)) report.nonfinite(i, detail::is_nan(value), detail::is_negative(value));
  }
};

}  // namespace ferry::kernels
