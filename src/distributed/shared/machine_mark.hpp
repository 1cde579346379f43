// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace ferry::detail {

/// The number of a namespace of the system that this process is in; 0 if the system does not tell it.
[[nodiscard]] std::uint64_t namespace_of(const char* path);

/// Facts that processes have in common if they reach each other's local sockets: the machine since it was
/// started, and its network as this process sees it.
struct machine_mark {
  std::array<char, 40> boot{};
  std::uint64_t network = 0;

  static machine_mark current();
  friend bool operator==(const machine_mark&, const machine_mark&) = default;
};

}  // namespace ferry::detail
