// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/memory_charge.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace ferry::detail {

namespace {

/// A number after `name` in a text file, in bytes times `unit`; -1 if there is none ("max").
std::int64_t number_in(const std::string& path, const std::string& name, std::int64_t unit = 1) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    long long number = -1;
    if (line.starts_with(name) && std::sscanf(line.c_str() + name.size(), " %lld", &number) == 1)
      return number * unit;
  }
  return -1;
}

/// Lowers `available` to what the control group of this process and those above it can still give: a job of a
/// batch system, a service or a container has a limit of its own. `path` is the line of /proc/self/cgroup
/// after "<number>:<controllers>:"; groups that this process does not see are left out.
void lower_to_groups(std::int64_t& available, const std::string& root, std::string path, const char* limit,
                     const char* usage, const char* cached) {
  if (path == "/") path.clear();
  for (;; path.resize(path.rfind('/'))) {
    const std::string group = root + path + "/";
    const std::int64_t limit_bytes = number_in(group + limit, "");
    const std::int64_t used_bytes = number_in(group + usage, "");
    if (limit_bytes >= 0 && limit_bytes < (std::int64_t{1} << 60) && used_bytes >= 0) {
      const std::int64_t files = number_in(group + "memory.stat", cached);
      const std::int64_t left =
          std::max<std::int64_t>(limit_bytes - used_bytes + std::max<std::int64_t>(files, 0), 0);
      available = available < 0 ? left : std::min(available, left);
    }
    if (path.rfind('/') == std::string::npos) return;
  }
}

}  // namespace

std::int64_t available_bytes() {
  std::int64_t available = number_in("/proc/meminfo", "MemAvailable:", 1024);
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t controllers = line.find(':') + 1, path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string names = line.substr(controllers, path - controllers - 1);
    if (names.empty())
      lower_to_groups(available, "/sys/fs/cgroup", line.substr(path), "memory.max", "memory.current",
                      "inactive_file ");
    else if (names == "memory")
      lower_to_groups(available, "/sys/fs/cgroup/memory", line.substr(path), "memory.limit_in_bytes",
                      "memory.usage_in_bytes", "total_inactive_file ");
  }
  return available;
}

}  // namespace ferry::detail
