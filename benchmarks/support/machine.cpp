// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <sys/utsname.h>

#include <fstream>
#include <string>
#include <thread>

namespace ferry_bench {

namespace {

/// The value after `key:` in a file of /proc; empty if there is none.
std::string value_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const auto colon = line.find(':');
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

std::size_t meminfo_bytes(const std::string& key) {
  const std::string kib = value_of("/proc/meminfo", key);
  return kib.empty() ? 0 : static_cast<std::size_t>(std::stoull(kib)) * 1024;
}

}  // namespace

facts describe_machine() {
  facts properties = {{"processor", value_of("/proc/cpuinfo", "model name")},
                      {"threads", static_cast<std::int64_t>(std::thread::hardware_concurrency())},
                      {"memory_gib", static_cast<double>(meminfo_bytes("MemTotal")) / 0x1p30}};
  if (utsname system{}; uname(&system) == 0) properties.emplace_back("kernel", std::string(system.release));
  if (auto driver = value_of("/proc/driver/nvidia/version", "NVRM version"); !driver.empty())
    properties.emplace_back("driver", std::move(driver));
  return properties;
}

std::size_t free_host_bytes() { return meminfo_bytes("MemAvailable"); }

}  // namespace ferry_bench
