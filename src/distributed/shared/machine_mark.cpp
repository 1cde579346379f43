// SPDX-License-Identifier: Apache-2.0
#include "machine_mark.hpp"

#include <sys/stat.h>

#include <cstdint>
#include <cstdio>

namespace ferry::detail {

std::uint64_t namespace_of(const char* path) {
  struct stat facts {};
  return ::stat(path, &facts) == 0 ? static_cast<std::uint64_t>(facts.st_ino) : 0;
}

machine_mark machine_mark::current() {
  machine_mark mark;
  if (std::FILE* const stream = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (std::fgets(mark.boot.data(), static_cast<int>(mark.boot.size()), stream) == nullptr) mark.boot = {};
    std::fclose(stream);
  }
  mark.network = namespace_of("/proc/self/ns/net");
  return mark;
}

}  // namespace ferry::detail
