// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_facts.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ferry_info {

/// The threads of the default host instance and the time that a kernel waits for them. All 0 if a kernel has
/// one thread, or threads that are not OpenMP's, or if the caller is in a parallel region.
struct wake_time {
  static constexpr double slow = 1e-4;  ///< seconds; threads with a processor each take a tenth of it

  int threads = 0;
  int processors = 0;  ///< that the process may run on
  bool spins = false;  ///< OMP_WAIT_POLICY lets idle threads spin
  double seconds = 0;  ///< to wake the threads and to wait for them, on average

  /// The advice for slow threads; empty if they are not slow, or if no variable helps.
  [[nodiscard]] std::string advice() const;
};

struct numa_node {
  int number = 0;
  std::string processors;  ///< as a list, "0-7,16-23"
  std::int64_t bytes = 0;
  std::int64_t free_bytes = 0;
};

/// Facts that the system tells of the host. Sizes and limits are bytes; -1 means no limit or not known.
struct machine_facts {
  std::string processor;
  std::string kernel;
  int processors = 0;         ///< of the machine
  int usable_processors = 0;  ///< that this process may run on
  double quota = 0.0;         ///< processors that the control group allows at a time; 0 for no limit
  std::vector<int> processor_set;
  std::int64_t memory = -1;
  std::int64_t available = -1;
  std::int64_t page_bytes = 0;
  std::int64_t lockable = -1;       ///< RLIMIT_MEMLOCK, soft
  std::int64_t lockable_hard = -1;  ///< and hard
  std::int64_t group_limit = -1;    ///< the smallest limit of the control groups that hold this process
  std::int64_t group_used = -1;     ///< bytes of the group with that limit
  std::string huge_pages;           ///< transparent huge pages: "always", "madvise", "never", or empty
  std::string huge_pages_defrag;
  std::int64_t advised_bytes = 0;  ///< of the memory that was advised with MADV_HUGEPAGE and touched, ...
  std::int64_t huge_bytes = -1;    ///< ... bytes that became huge pages; -1 where that is not known
  bool balances_nodes = false;     ///< the kernel moves pages between nodes
  std::vector<numa_node> nodes;
  std::vector<std::pair<std::string, std::string>> environment;  ///< variables that change how ferry runs
};

machine_facts look_at_machine();

/// Rates in GB/s (1e9 bytes); 0 where a rate was not measured.
struct measured_rates {
  std::int64_t bytes = 0;  ///< size of the blocks
  struct space {
    std::string name;
    double allocation = 0;  ///< to allocate, and where the space does so, to touch and lock its pages
    double to_device = 0;
    double from_device = 0;
    std::string made_of;  ///< how the memory was obtained
  };
  std::vector<space> spaces;
  std::string skipped;  ///< why nothing was measured
};

struct profile_facts {
  std::string origin;
  std::vector<std::string> measured;
  std::vector<std::pair<std::string, double>> numbers;
};

enum class verdict { good, note, warning, failure };
const char* name_of(verdict result);

/// One check: what was found and, unless it is good, what to change.
struct check {
  std::string name;
  verdict result = verdict::good;
  std::string finding;
  std::string advice;
};

struct report {
  std::string ferry, kokkos, backend, execution_space, host_space;
  int host_threads = 0;
  wake_time wakes;
  int device = 0;  ///< the one in use
  device_survey survey;
  machine_facts machine;
  measured_rates rates;
  profile_facts profile;
  std::vector<check> checks;

  [[nodiscard]] bool device_is_host() const { return backend == "host"; }
};

/// Judges the facts; nothing is looked up here.
std::vector<check> judge(const report& facts);

/// Theoretical rate of a PCIe link in one direction, GB/s; 0 for an unknown generation.
double link_rate(int generation, int lanes);

std::string as_text(const report& facts);
std::string as_json(const report& facts);

}  // namespace ferry_info
