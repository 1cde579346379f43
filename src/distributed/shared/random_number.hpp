// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ferry::detail {

/// A number of the system that no other process gets, which is not 0.
[[nodiscard]] std::uint64_t random_number();

}  // namespace ferry::detail
