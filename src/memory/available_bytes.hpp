// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ferry::detail {

/// Bytes that the system can give without taking them from somebody: those that are available on the machine,
/// and in the control groups of this process (of either version). The system would rather end processes than
/// refuse pages.
[[nodiscard]] std::int64_t available_bytes();

}  // namespace ferry::detail
