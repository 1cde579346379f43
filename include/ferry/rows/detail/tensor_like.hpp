// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/device.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace ferry::detail {

/// A tensor of `rows` rows on a device that has an array's extents after the first.
template <class T, class Space, class Extents = dynamic_rank, std::size_t Rank = 1, class Array>
tensor<T, Space, Extents> tensor_like(const Array& array, device home, std::int64_t rows, std::string label) {
  if constexpr (Rank < max_rank)
    if (array.rank > Rank)
      return tensor_like<T, Space, Extents, Rank + 1>(array, home, rows, std::move(label));
  std::array<std::size_t, Rank> sizes;
  for (std::size_t i = 0; i < Rank; ++i) sizes[i] = static_cast<std::size_t>(array.extents[i]);
  sizes[0] = static_cast<std::size_t>(rows);
  return {std::move(label), home, sizes};
}

}  // namespace ferry::detail
