// SPDX-License-Identifier: Apache-2.0
#include "available_bytes.hpp"

#include <ferry/memory/detail/file.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace ferry::detail {

namespace {

/// A number after `name` in a text file, in bytes times `unit`; -1 if there is none ("max").
std::int64_t number_in(const char* path, const char* name, std::int64_t unit) {
  std::FILE* const stream = std::fopen(path, "re");
  if (stream == nullptr) return -1;
  char line[160];
  long long number = -1;
  while (number < 0 && std::fgets(line, sizeof line, stream) != nullptr)
    if (std::strncmp(line, name, std::strlen(name)) == 0)
      if (std::sscanf(line + std::strlen(name), " %lld", &number) != 1) break;
  std::fclose(stream);
  return number < 0 ? -1 : number * unit;
}

/// Lowers `most` to what the control group of this process and those above it can still give: a job of a
/// batch system, a service or a container has a limit of its own. `path` is the line of /proc/self/cgroup
/// after "<number>:<controllers>:"; groups that this process does not see are left out.
void lower_to_groups(std::int64_t& most, const std::string& root, std::string path, const char* limit,
                     const char* usage, const char* cached) {
  if (path == "/") path.clear();
  for (;; path.resize(path.rfind('/'))) {
    const std::string group = root + path + "/";
    const std::int64_t limit_bytes = number_in((group + limit).c_str(), "", 1);
    const std::int64_t used_bytes = number_in((group + usage).c_str(), "", 1);
    if (limit_bytes >= 0 && limit_bytes < (std::int64_t{1} << 60) && used_bytes >= 0) {
      const std::int64_t files = number_in((group + "memory.stat").c_str(), cached, 1);
      const std::int64_t left =
          std::max<std::int64_t>(limit_bytes - used_bytes + std::max<std::int64_t>(files, 0), 0);
      most = most < 0 ? left : std::min(most, left);
    }
    if (path.rfind('/') == std::string::npos) return;
  }
}

}  // namespace

std::int64_t available_bytes() {
  std::int64_t most = number_in("/proc/meminfo", "MemAvailable:", 1024);
  const file_stream stream(std::fopen("/proc/self/cgroup", "re"));
  if (stream == nullptr) return most;
  char line[4096];
  while (std::fgets(line, sizeof line, stream.get()) != nullptr) {
    line[std::strcspn(line, "\n")] = '\0';
    char* const controllers = std::strchr(line, ':');
    char* const group = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
    if (group == nullptr) continue;
    *group = '\0';
    if (controllers[1] == '\0')
      lower_to_groups(most, "/sys/fs/cgroup", group + 1, "memory.max", "memory.current", "inactive_file ");
    else if (std::strcmp(controllers + 1, "memory") == 0)
      lower_to_groups(most, "/sys/fs/cgroup/memory", group + 1, "memory.limit_in_bytes",
                      "memory.usage_in_bytes", "total_inactive_file ");
  }
  return most;
}

}  // namespace ferry::detail
