// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <cstdio>

namespace ferry::detail {

/// The number of a namespace of the system that this process is in; 0 where the system does not tell it.
inline std::uint64_t namespace_of(const char* path) {
  struct stat found {};
  return ::stat(path, &found) == 0 ? static_cast<std::uint64_t>(found.st_ino) : 0;
}

/// What processes have in common that reach each other's local sockets: the machine since it was started, and
/// its network as this process sees it.
struct machine_mark {
  std::array<char, 40> boot{};
  std::uint64_t network = 0;

  static machine_mark here() {
    machine_mark made;
    if (std::FILE* const stream = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
      if (std::fgets(made.boot.data(), static_cast<int>(made.boot.size()), stream) == nullptr) made.boot = {};
      std::fclose(stream);
    }
    made.network = namespace_of("/proc/self/ns/net");
    return made;
  }
  friend bool operator==(const machine_mark&, const machine_mark&) = default;
};

}  // namespace ferry::detail
