// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// row / parts and row % parts, for row >= 0 and parts > 0. Numbers of 32 bits, as those of most rows are,
/// take a device a fifth of the instructions of 64 bits.
struct divided {
  std::int64_t quotient;
  std::int64_t rest;

  KOKKOS_FUNCTION divided(std::int64_t row, std::int64_t parts) {
    if ((static_cast<std::uint64_t>(row | parts) >> 32) == 0) {
      const auto narrow = static_cast<std::uint32_t>(row), divisor = static_cast<std::uint32_t>(parts);
      const std::uint32_t whole = narrow / divisor;
      quotient = whole;
      rest = narrow - whole * divisor;
    } else {
      quotient = row / parts;
      rest = row - quotient * parts;
    }
  }
};

}  // namespace ferry::kernels
