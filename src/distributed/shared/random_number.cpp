// SPDX-License-Identifier: Apache-2.0
#include "random_number.hpp"

#include <cstdint>
#include <random>

namespace ferry::detail {

std::uint64_t random_number() {
  std::random_device random;
  return ((static_cast<std::uint64_t>(random()) << 32) ^ random()) | 1;
}

}  // namespace ferry::detail
