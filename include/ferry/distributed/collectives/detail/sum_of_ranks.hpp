// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// sum[i] = the values of all ranks at i, added in the order of the ranks. One thread per element.
template <class T>
struct sum_of_ranks {
  const T* values;  ///< [ranks x count]
  std::int64_t count;
  int ranks;
  T* sum;

  [[nodiscard]] std::int64_t bytes_each() const { return (ranks + 1) * static_cast<std::int64_t>(sizeof(T)); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    auto total = convert<accumulation_t<T>>(values[i]);
    for (int r = 1; r < ranks; ++r) total += convert<accumulation_t<T>>(values[r * count + i]);
    sum[i] = convert<T>(total);
  }
};

}  // namespace ferry::kernels
