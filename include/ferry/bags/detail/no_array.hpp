// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/spaces.hpp>

#include <cstdint>

namespace ferry::detail {

/// Stands for the array that a call does without: the weights of positions, or the positions of maxima.
struct no_array {
  using value_type = void;
  using memory_space = pageable_space;
  static constexpr void* data = nullptr;
  static constexpr std::int64_t row_stride() { return 0; }
};

}  // namespace ferry::detail
