// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <sys/utsname.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>

namespace ferry::host {

/// The value of the first `key` in a file of "key : value" lines; for an empty key the first line. Empty
/// if there is none.
inline std::string line_of(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::size_t begin = key.empty() ? 0 : line.find(':');
    if (begin == std::string::npos) continue;
    begin = line.find_first_not_of(": \t", begin);
    const std::size_t end = line.find_last_not_of(" \t");
    return begin == std::string::npos || end < begin ? "" : line.substr(begin, end - begin + 1);
  }
  return {};
}

struct identity_functions {
  /// The name of the processor, and the operating system's kernel, which maps its memory.
  static device_id device_identity() {
    device_id id{line_of("/proc/cpuinfo", "model name"), "none"};
    if (id.device.empty()) id.device = "host";
    utsname system{};
    if (::uname(&system) == 0) id.driver = detail::joined(system.sysname, " ", system.release);
    return id;
  }
};

}  // namespace ferry::host
