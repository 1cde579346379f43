// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"
#include "text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace ferry_info {

namespace {

/// Collects checks. Each judge adds one, or none where there is nothing to judge.
struct bench {
  const report& facts;
  std::vector<check> checks;

  void add(const char* name, verdict result, std::string finding, std::string advice = {}) {
    checks.push_back({name, result, std::move(finding), std::move(advice)});
  }

  [[nodiscard]] const device_facts* device() const {
    for (const auto& entry : facts.survey.devices)
      if (entry.number == facts.device) return &entry;
    return nullptr;
  }
  [[nodiscard]] const measured_rates::space* rates_of(const char* name) const {
    for (const auto& entry : facts.rates.spaces)
      if (entry.name == name) return &entry;
    return nullptr;
  }

  void usable_device() {
    if (facts.survey.failure.empty()) return;
    add("device", verdict::failure, facts.survey.failure,
        "check that the driver is loaded (nvidia-smi), that this user may open /dev/nvidia*, and what "
        "CUDA_VISIBLE_DEVICES says");
  }

  void driver() {
    const auto& survey = facts.survey;
    if (survey.toolkit.empty() || survey.runtime.empty()) return;
    const double built = std::atof(survey.toolkit.c_str());
    const double most = std::atof(survey.runtime.c_str());
    const std::string finding =
        "built with CUDA " + survey.toolkit + ", the driver supports up to CUDA " + survey.runtime;
    if (static_cast<int>(most) < static_cast<int>(built))
      add("driver", verdict::failure, finding, "install a newer driver, or build with an older toolkit");
    else
      add("driver", most + 0.001 < built ? verdict::note : verdict::good, finding,
          most + 0.001 < built ? "newer features of the toolkit may be refused; update the driver" : "");
  }

  void access() {
    const auto* card = device();
    if (card == nullptr || facts.device_is_host()) return;
    if (!card->maps_host_memory)
      add("mapped memory", verdict::failure, "the device can't map host memory",
          "use path::staged; path::direct, ordered and cooperative need a device that maps host memory");
    else if (!card->concurrent_managed_access)
      add("mapped memory", verdict::warning,
          "no concurrent access to managed memory: mapped_space falls back to page-locked memory",
          "random rows of tables above 1 GiB are slower there; prefer path::ordered or path::cooperative "
          "(path::automatic knows once the machine is measured: ferry-info --calibrate). Under WSL 2, in some virtual "
          "machines and on Windows drivers this access does not exist");
    else
      add("mapped memory", verdict::good, "mapped_space gets large device pages (concurrent managed access)");
    if (!card->takes_registered_memory)
      add("page-locking in place", verdict::note, "the device takes no registered memory",
          "pinned_space uses slower allocations, and adopt<pinned_space> is refused");
    add("pageable access", verdict::good,
        card->pageable_by_host_tables ? "kernels reach ordinary memory through the host's page tables (ATS)"
        : card->pageable_access
            ? "kernels reach ordinary memory (HMM)"
            : "kernels do not reach ordinary memory; pageable tables go through page-locked slots");
  }

  void huge_pages() {
    const auto& host = facts.machine;
    if (host.huge_pages.empty()) {
      add("huge pages", verdict::warning, "this kernel has no transparent huge pages",
          "tables of many gigabytes are page-locked page by page; use a kernel with CONFIG_TRANSPARENT_HUGEPAGE");
    } else if (host.huge_pages == "never") {
      add("huge pages", verdict::warning,
          "transparent huge pages are switched off, so page-locking visits each 4 KiB",
          "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (lasting: transparent_hugepage=madvise on the "
          "kernel's command line)");
    } else if (host.huge_bytes >= 0 && 2 * host.huge_bytes < host.advised_bytes) {
      add("huge pages", verdict::warning,
          "of " + std::to_string(host.advised_bytes >> 20) + " MiB advised with MADV_HUGEPAGE, " +
              std::to_string(host.huge_bytes >> 20) + " MiB became huge pages",
          "memory is fragmented, or the defrag setting (" + host.huge_pages_defrag +
              ") does not let a page fault wait; as root: echo 1 > /proc/sys/vm/compact_memory, and echo madvise > "
              "/sys/kernel/mm/transparent_hugepage/defrag. Allocate large tables first");
    } else {
      add("huge pages", verdict::good,
          "setting " + host.huge_pages +
              (host.huge_bytes >= 0 ? ", MADV_HUGEPAGE works"
                                    : "; whether MADV_HUGEPAGE works is not known"));
    }
  }

  void locking() {
    const auto* pinned = rates_of("pinned_space");
    if (facts.device_is_host() || pinned == nullptr || pinned->allocation <= 0) return;
    const std::string finding = "page-locking at " + number(pinned->allocation) +
                                " GB/s: 16 GiB take about " + number(16 * gib / 1e9 / pinned->allocation) +
                                " s";
    // One H200 machine locks 16 GiB in 0.9 to 4.5 s with huge pages, in 7 to 16 s without.
    if (pinned->allocation < 2.5)
      add("page-locking", verdict::warning, finding,
          "see huge pages and processors; keep pinned tables for the whole run; for rows prefer mapped_space, which is not locked");
    else
      add("page-locking", verdict::good, finding);
  }

  void lock_limit() {
    const auto& host = facts.machine;
    if (host.lockable < 0) {
      add("memlock limit", verdict::good, "no limit");
      return;
    }
    const bool passed_it =
        !facts.device_is_host() && rates_of("pinned_space") != nullptr && facts.rates.bytes > host.lockable;
    add("memlock limit", verdict::note,
        std::to_string(host.lockable >> 10) + " KiB" +
            (passed_it ? "; the device's driver locked " + std::to_string(facts.rates.bytes >> 20) +
                             " MiB all the same, it does not count pages here"
                       : ""),
        "mlock() and the registration of tables for RDMA (MPI, NCCL over InfiniBand) fail above it: ulimit -l unlimited, "
        "LimitMEMLOCK=infinity in a service, --ulimit memlock=-1 for a container");
  }

  void memory() {
    const auto& host = facts.machine;
    if (host.group_limit >= 0 && (host.memory < 0 || host.group_limit < host.memory)) {
      const std::int64_t left = host.group_used < 0
                                    ? host.group_limit
                                    : std::max<std::int64_t>(0, host.group_limit - host.group_used);
      add("memory limit", 4 * left < host.group_limit ? verdict::warning : verdict::note,
          "the control group allows " + in_gib(host.group_limit) + " of the machine's " +
              in_gib(host.memory) + ", " + in_gib(left) + " are left",
          "tables count against it, and page-locked pages can't be reclaimed: beyond the limit the process is killed. Raise the "
          "job's memory (Slurm --mem, Kubernetes limits, docker --memory), and keep ferry inside of it with ferry::set_memory_budget");
    } else if (host.available >= 0 && host.memory > 0 && 10 * host.available < host.memory) {
      add("free memory", verdict::warning,
          in_gib(host.available) + " of " + in_gib(host.memory) + " are available",
          "page-locking fails or pushes other programs out; end them, or use smaller tables");
    } else if (host.available >= 0) {
      add("free memory", verdict::good,
          in_gib(host.available) + " of " + in_gib(host.memory) + " are available");
    }
  }

  void nodes() {
    const auto& host = facts.machine;
    if (host.nodes.size() < 2) return;
    const auto* card = device();
    if (card != nullptr && card->numa_node >= 0) {
      const numa_node* home = nullptr;
      for (const auto& entry : host.nodes)
        if (entry.number == card->numa_node) home = &entry;
      const bool near = home == nullptr || [&] {
        for (const int processor : host.processor_set)
          if (holds(home->processors, processor)) return true;
        return false;
      }();
      if (!near) {
        add("NUMA", verdict::warning,
            "the device is at node " + std::to_string(card->numa_node) +
                ", and this process may run on other nodes only",
            "numactl --cpunodebind=" + std::to_string(card->numa_node) +
                ", or the binding options of the launcher (srun "
                "--gpu-bind=closest, mpirun --map-by numa)");
        return;
      }
      add("NUMA", verdict::good,
          "the device is at node " + std::to_string(card->numa_node) +
              "; ferry places large host tables there");
    } else if (card != nullptr && !facts.device_is_host()) {
      add("NUMA", verdict::note, "the system does not tell which node the device is at",
          "tables lie on the node of the thread that touches them first; bind the process with numactl to the node that measures fastest");
    } else {
      add("NUMA", verdict::good,
          std::to_string(host.nodes.size()) +
              " nodes; ferry interleaves large mapped and pinned tables over them");
    }
    if (host.balances_nodes)
      add("NUMA balancing", verdict::note, "the kernel moves pages between nodes while a program runs",
          "it unmaps pages of pageable tables to see who uses them; as root: echo 0 > /proc/sys/kernel/numa_balancing");
  }

  void link() {
    const auto* card = device();
    if (card == nullptr || facts.device_is_host()) return;
    const double most = link_rate(card->link_generation, card->link_lanes);
    const auto* pinned = rates_of("pinned_space");
    const double measured = pinned == nullptr ? 0 : std::min(pinned->to_device, pinned->from_device);
    std::string finding;
    if (card->link_generation > 0)
      finding = "PCIe " + std::to_string(card->link_generation) + " x" + std::to_string(card->link_lanes);
    if (measured > 0)
      finding += (finding.empty() ? "" : ", ") + number(measured) + " GB/s measured with page-locked memory";
    if (finding.empty()) return;
    if (card->link_lanes > 0 && card->link_lanes < card->best_link_lanes)
      add("link", verdict::warning, finding + "; the device has x" + std::to_string(card->best_link_lanes),
          "the slot, a riser or a shared switch gives fewer lanes: move the card, or check the firmware's bifurcation setting");
    else if (most > 0 && measured > 0 && measured < 0.7 * most)
      add("link", verdict::warning, finding + " of " + number(most) + " GB/s that the link could carry",
          "other devices or programs share the link, the process runs far from the device (NUMA), or an IOMMU translates each page "
          "(iommu=pt on the kernel's command line)");
    else
      add("link", verdict::good, finding);
  }

  void mapped_rate() {
    const auto* mapped = rates_of("mapped_space");
    const auto* pinned = rates_of("pinned_space");
    if (facts.device_is_host() || mapped == nullptr || pinned == nullptr || pinned->to_device <= 0) return;
    const std::string finding = "kernels read mapped memory at " + number(mapped->to_device) + " GB/s, " +
                                number(100 * mapped->to_device / pinned->to_device, 0) + " % of DMA";
    if (mapped->to_device < 0.6 * pinned->to_device)
      add("zero-copy", verdict::warning, finding,
          "the pages are small or remote: see mapped memory and NUMA; path::automatic avoids this once the machine is measured "
          "(ferry-info --calibrate)");
    else
      add("zero-copy", verdict::good, finding);
  }

  void threads() {
    const auto& host = facts.machine;
    const double usable =
        host.quota > 0 ? std::min<double>(host.quota, host.usable_processors) : host.usable_processors;
    const std::string finding = std::to_string(facts.host_threads) + " host threads on " +
                                number(usable, host.quota > 0 ? 1 : 0) + " of " +
                                std::to_string(host.processors) + " processors";
    if (static_cast<double>(facts.host_threads) > usable + 0.5)
      add("processors", verdict::warning, finding + (host.quota > 0 ? " (the control group's quota)" : ""),
          "threads that wait for each other lose their turn; set OMP_NUM_THREADS=" +
              number(std::max(1.0, std::floor(usable)), 0));
    else if (!facts.device_is_host() && facts.host_threads < 8)
      add("processors", verdict::note, finding,
          "path::staged and path::cooperative reach the link's rate with about 8 threads; OMP_NUM_THREADS, or more cores for the job");
    else
      add("processors", verdict::good, finding);
  }

  void wakes() {
    const auto& wakes_of_host = facts.wakes;
    if (wakes_of_host.threads < 2) return;
    const std::string finding = "a kernel waits " + number(wakes_of_host.seconds * 1e6) + " us for its " +
                                std::to_string(wakes_of_host.threads) + " threads" +
                                (wakes_of_host.spins ? ", which spin" : ", which sleep");
    const std::string advice = wakes_of_host.advice();
    if (!advice.empty())
      add("host threads", verdict::warning, finding, advice);
    else
      add("host threads", verdict::good, finding);
  }

  void environment() {
    for (const auto& [name, value] : facts.machine.environment) {
      if (name == "CUDA_LAUNCH_BLOCKING" && value == "1")
        add("environment", verdict::warning, name + "=1",
            "each kernel waits for its end; unset it unless you debug");
      else if (name == "KOKKOS_TOOLS_LIBS" && !value.empty())
        add("environment", verdict::note, name + "=" + value,
            "a tool may fence around each kernel; do not time with it");
    }
  }

  void profile() {
    const auto& profile_in_use = facts.profile;
    if (profile_in_use.origin.empty()) return;
    if (profile_in_use.measured.empty())
      add("profile", verdict::note, profile_in_use.origin,
          "ferry-info --calibrate measures this machine for path::automatic, in about four seconds");
    else
      add("profile", verdict::good, profile_in_use.origin);
  }

  static bool holds(const std::string& list, int number) {
    for (std::size_t position = 0; position < list.size();) {
      std::size_t end = 0;
      const int first = std::atoi(list.c_str() + position);
      int last = first;
      end = list.find_first_of("-,", position);
      if (end != std::string::npos && list[end] == '-') {
        last = std::atoi(list.c_str() + end + 1);
        end = list.find(',', end);
      }
      if (first <= number && number <= last) return true;
      if (end == std::string::npos) return false;
      position = end + 1;
    }
    return false;
  }
};

}  // namespace

std::string wake_time::advice() const {
  if (seconds < slow) return {};
  if (processors > 0 && threads > processors)
    return "set OMP_NUM_THREADS=" + std::to_string(processors) + ", one thread for each processor";
  if (spins)
    return "other work runs on the processors while the threads spin for it; set OMP_WAIT_POLICY=passive, or fewer OMP_NUM_THREADS";
  return {};
}

double link_rate(int generation, int lanes) {
  // GB/s of one lane after the line code: 8 of 10 bits up to generation 2, 128 of 130 up to 5, flits from 6 on.
  constexpr double lane[] = {0, 0.25, 0.5, 0.985, 1.969, 3.938, 7.563};
  return generation >= 1 && generation <= 6 && lanes > 0 ? lane[generation] * lanes : 0.0;
}

const char* name_of(verdict result) {
  switch (result) {
    case verdict::good:
      return "good";
    case verdict::note:
      return "note";
    case verdict::warning:
      return "warning";
    default:
      return "failure";
  }
}

std::vector<check> judge(const report& facts) {
  bench judges{facts, {}};
  judges.usable_device();
  judges.driver();
  judges.access();
  judges.link();
  judges.mapped_rate();
  judges.huge_pages();
  judges.locking();
  judges.lock_limit();
  judges.memory();
  judges.nodes();
  judges.threads();
  judges.wakes();
  judges.environment();
  judges.profile();
  return std::move(judges.checks);
}

}  // namespace ferry_info
