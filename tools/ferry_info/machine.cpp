// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace ferry_info {

namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The text after "key:" in a file of such lines.
std::string value_of(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const auto colon = line.find(':', key.size());
    if (colon == std::string::npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

/// A number at the start of a text, -1 for anything else ("max").
std::int64_t number_of(const std::string& text) {
  char* end = nullptr;
  const std::int64_t value = std::strtoll(text.c_str(), &end, 10);
  return end == text.c_str() ? -1 : value;
}

std::int64_t kibibytes(const fs::path& path, const std::string& key) {
  const std::int64_t value = number_of(value_of(path, key));
  return value < 0 ? -1 : value * 1024;
}

/// The chosen one of "always [madvise] never".
std::string chosen_of(const std::string& line) {
  const auto begin = line.find('[');
  const auto end = line.find(']');
  return begin == std::string::npos || end == std::string::npos || end < begin
             ? std::string()
             : line.substr(begin + 1, end - begin - 1);
}

/// Bytes of huge pages that the mapping at `address` has; -1 where the system does not tell.
std::int64_t huge_bytes_at(const void* address) {
  std::ifstream file("/proc/self/smaps");
  const auto target = reinterpret_cast<std::uintptr_t>(address);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    const auto dash = line.find('-');
    const auto blank = line.find(' ');
    if (dash != std::string::npos && blank != std::string::npos && dash < blank &&
        std::isxdigit(static_cast<unsigned char>(line[0])) != 0) {
      const auto begin = std::strtoull(line.c_str(), nullptr, 16);
      const auto end = std::strtoull(line.c_str() + dash + 1, nullptr, 16);
      inside = begin <= target && target < end;
    } else if (inside && line.compare(0, 14, "AnonHugePages:") == 0) {
      return number_of(line.substr(line.find_first_not_of(" \t", 14))) * 1024;
    }
  }
  return -1;
}

/// Advises, touches and looks, as ferry's page-locked memory does.
void try_huge_pages(machine_facts& facts) {
  constexpr std::size_t huge = std::size_t{1} << 21;
  constexpr std::size_t bytes = 8 * huge;
  void* raw = ::mmap(nullptr, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return;
  const auto address = reinterpret_cast<std::uintptr_t>(raw);
  char* begin = static_cast<char*>(raw) + (huge - address % huge) % huge;
  facts.advised_bytes = static_cast<std::int64_t>(bytes);
  if (::madvise(begin, bytes, MADV_HUGEPAGE) == 0) {
    for (std::size_t offset = 0; offset < bytes; offset += 4096)
      static_cast<volatile char*>(begin)[offset] = 1;
    const std::int64_t measured = huge_bytes_at(begin);
    facts.huge_bytes = measured < 0 ? -1 : std::min(measured, facts.advised_bytes);
  } else {
    facts.huge_bytes = 0;
  }
  ::munmap(raw, bytes + huge);
}

/// Applies the limits of one group and of those that contain it.
template <class Look>
void walk_up(const fs::path& root, std::string group, const Look& look) {
  for (;;) {
    look(root / fs::path(group).relative_path());
    const auto slash = group.find_last_of('/');
    if (slash == std::string::npos || group == "/" || group.empty()) return;
    group = slash == 0 ? "/" : group.substr(0, slash);
  }
}

void look_at_groups(machine_facts& facts) {
  const auto take_limit = [&](std::int64_t limit, std::int64_t usage) {
    // The first version of control groups writes the largest multiple of a page for no limit.
    if (limit < 0 || limit >= std::int64_t{1} << 62) return;
    if (facts.group_limit >= 0 && facts.group_limit <= limit) return;
    facts.group_limit = limit;
    facts.group_used = usage;
  };
  const auto take_quota = [&](double quota, double period) {
    if (quota <= 0 || period <= 0) return;
    const double processors = quota / period;
    if (facts.quota == 0.0 || processors < facts.quota) facts.quota = processors;
  };
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string kinds = std::string(",").append(line, first + 1, second - first - 1).append(",");
    const std::string group = line.substr(second + 1);
    if (kinds == ",,") {
      walk_up("/sys/fs/cgroup", group, [&](const fs::path& folder) {
        for (const char* name : {"memory.max", "memory.high"})
          take_limit(number_of(first_line(folder / name)), number_of(first_line(folder / "memory.current")));
        std::istringstream quota(first_line(folder / "cpu.max"));
        double most = 0, period = 0;
        if (quota >> most >> period) take_quota(most, period);
      });
    } else if (kinds.find(",memory,") != std::string::npos) {
      walk_up("/sys/fs/cgroup/memory", group, [&](const fs::path& folder) {
        take_limit(number_of(first_line(folder / "memory.limit_in_bytes")),
                   number_of(first_line(folder / "memory.usage_in_bytes")));
      });
    } else if (kinds.find(",cpu,") != std::string::npos) {
      walk_up("/sys/fs/cgroup/cpu", group, [&](const fs::path& folder) {
        take_quota(static_cast<double>(number_of(first_line(folder / "cpu.cfs_quota_us"))),
                   static_cast<double>(number_of(first_line(folder / "cpu.cfs_period_us"))));
      });
    }
  }
}

void look_at_nodes(machine_facts& facts) {
  const fs::path root = "/sys/devices/system/node";
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root, none)) {
    const std::string name = entry.path().filename();
    if (name.compare(0, 4, "node") != 0 || name.size() < 5 ||
        std::isdigit(static_cast<unsigned char>(name[4])) == 0)
      continue;
    numa_node numa;
    numa.number = std::atoi(name.c_str() + 4);
    numa.processors = first_line(entry.path() / "cpulist");
    std::ifstream file(entry.path() / "meminfo");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string node, number, key;
      std::int64_t kib = 0;
      if (!(words >> node >> number >> key >> kib)) continue;
      if (key == "MemTotal:") numa.bytes = kib * 1024;
      if (key == "MemFree:") numa.free_bytes = kib * 1024;
    }
    facts.nodes.push_back(std::move(numa));
  }
  std::sort(facts.nodes.begin(), facts.nodes.end(),
            [](const numa_node& a, const numa_node& b) { return a.number < b.number; });
}

std::int64_t limit_of(rlim_t value) {
  return value == RLIM_INFINITY || value > static_cast<rlim_t>(INT64_MAX) ? -1
                                                                          : static_cast<std::int64_t>(value);
}

}  // namespace

machine_facts look_at_machine() {
  machine_facts facts;
  facts.processor = value_of("/proc/cpuinfo", "model name");
  if (utsname system{}; ::uname(&system) == 0)
    facts.kernel = std::string(system.sysname) + " " + system.release;
  facts.processors = static_cast<int>(std::max(0L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  if (cpu_set_t usable; ::sched_getaffinity(0, sizeof usable, &usable) == 0)
    for (int processor = 0; processor < CPU_SETSIZE; ++processor)
      if (CPU_ISSET(processor, &usable)) facts.processor_set.push_back(processor);
  facts.usable_processors = static_cast<int>(facts.processor_set.size());
  facts.memory = kibibytes("/proc/meminfo", "MemTotal");
  facts.available = kibibytes("/proc/meminfo", "MemAvailable");
  facts.page_bytes = ::sysconf(_SC_PAGESIZE);
  if (rlimit lock{}; ::getrlimit(RLIMIT_MEMLOCK, &lock) == 0) {
    facts.lockable = limit_of(lock.rlim_cur);
    facts.lockable_hard = limit_of(lock.rlim_max);
  }
  facts.huge_pages = chosen_of(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
  facts.huge_pages_defrag = chosen_of(first_line("/sys/kernel/mm/transparent_hugepage/defrag"));
  facts.balances_nodes = number_of(first_line("/proc/sys/kernel/numa_balancing")) > 0;
  look_at_groups(facts);
  look_at_nodes(facts);
  try_huge_pages(facts);
  for (const char* name :
       {"FERRY_PROFILE", "FERRY_WITHOUT", "KOKKOS_TOOLS_LIBS", "KOKKOS_VISIBLE_DEVICES", "OMP_NUM_THREADS",
        "OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING",
        "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING"})
    if (const char* value = std::getenv(name)) facts.environment.emplace_back(name, value);
  return facts;
}

}  // namespace ferry_info
