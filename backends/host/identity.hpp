// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/file.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <sys/utsname.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace ferry::host {

/// The value of the first `key` in a file of "key : value" lines; for an empty key the first line. Empty
/// if there is none.
inline std::string line_of(const char* path, std::string_view key) {
  const detail::file_stream file(std::fopen(path, "re"));
  if (file == nullptr) return {};
  std::string value;
  char line[512];
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    const std::string_view text(line);
    if (text.substr(0, key.size()) != key) continue;
    std::size_t begin = key.empty() ? 0 : text.find(':');
    if (begin == std::string_view::npos) continue;
    begin = text.find_first_not_of(": \t", begin);
    const std::size_t end = text.find_last_not_of(" \t\n");
    if (begin != std::string_view::npos && end >= begin) value = text.substr(begin, end - begin + 1);
    break;
  }
  return value;
}

struct identity_functions {
  /// The name of the processor, and the operating system's kernel, which maps its memory.
  static device_id device_identity() {
    device_id id{line_of("/proc/cpuinfo", "model name"), "none"};
    if (id.device.empty()) id.device = "host";
    utsname system{};
    if (::uname(&system) == 0) id.driver = ferry::detail::joined(system.sysname, " ", system.release);
    return id;
  }
};

}  // namespace ferry::host
