// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"
#include "text.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ferry_info {

namespace {

using json = nlohmann::ordered_json;

std::string limit(std::int64_t bytes) {
  if (bytes < 0) return "none";
  return bytes < (std::int64_t{1} << 30) ? std::to_string(bytes >> 10) + " KiB" : in_gib(bytes);
}
std::string rate(double gb_per_s) { return gb_per_s > 0 ? number(gb_per_s) : "-"; }
const char* yes(bool is) { return is ? "yes" : "no"; }

/// null for what is not known.
json known(std::int64_t value) { return value < 0 ? json() : json(value); }
json known(const std::string& value) { return value.empty() ? json() : json(value); }
json positive(double value) { return value > 0 ? json(value) : json(); }

class lines {
 public:
  void head(const std::string& title) { text_ += (text_.empty() ? "" : "\n") + title + "\n"; }
  void row(const std::string& name, const std::string& value) {
    if (value.empty()) return;
    std::string padded = name;
    padded.resize(std::max<std::size_t>(22, padded.size() + 1), ' ');
    text_ += "  " + padded + value + "\n";
  }
  void raw(const std::string& line) { text_ += line + "\n"; }
  [[nodiscard]] std::string text() const { return text_; }

 private:
  std::string text_;
};

std::string link_text(const device_facts& device) {
  if (device.link_generation == 0 && device.link_lanes == 0) return "unknown";
  std::string text =
      "PCIe " + std::to_string(device.link_generation) + " x" + std::to_string(device.link_lanes);
  if (const double most = link_rate(device.link_generation, device.link_lanes); most > 0)
    text += " (" + number(most) + " GB/s each way)";
  if (device.best_link_generation != device.link_generation || device.best_link_lanes != device.link_lanes)
    text += ", at best PCIe " + std::to_string(device.best_link_generation) + " x" +
            std::to_string(device.best_link_lanes) + " (an idle device may rest at a lower generation)";
  return text;
}

void print_device(lines& out, const report& facts, const device_facts& device) {
  out.head("device " + std::to_string(device.number) + (device.number == facts.device ? " (in use)" : ""));
  out.row("name", device.name);
  if (facts.device_is_host()) return;
  out.row("architecture", device.architecture + ", " + std::to_string(device.processors) +
                              " multiprocessors, " + std::to_string(device.copy_engines) + " copy engines");
  out.row("memory", in_gib(static_cast<std::int64_t>(device.memory_bytes)) +
                        (device.free_bytes == 0
                             ? ""
                             : ", " + in_gib(static_cast<std::int64_t>(device.free_bytes)) + " free"));
  out.row("bus",
          device.bus + (device.numa_node >= 0 ? ", NUMA node " + std::to_string(device.numa_node) : ""));
  out.row("link", link_text(device));
  out.row("maps host memory", std::string(yes(device.maps_host_memory)) + ", registered memory " +
                                  yes(device.takes_registered_memory));
  out.row("managed memory", std::string("concurrent access ") + yes(device.concurrent_managed_access));
  out.row("pageable memory", std::string(device.pageable_by_host_tables ? "reached (ATS)"
                                         : device.pageable_access       ? "reached (HMM)"
                                                                        : "not reached by kernels"));
  out.row("host atomics", device.host_atomics ? "by the link" : "not by the link");
  std::string peers;
  for (const int peer : device.peers) peers.append(peers.empty() ? "" : ", ").append(std::to_string(peer));
  out.row("reaches devices", peers);
}

json device_json(const device_facts& device) {
  return {
      {"number", device.number},
      {"name", device.name},
      {"architecture", known(device.architecture)},
      {"multiprocessors", device.processors},
      {"copy_engines", device.copy_engines},
      {"memory_bytes", device.memory_bytes},
      {"free_bytes", device.free_bytes == 0 ? json() : json(device.free_bytes)},
      {"cache_bytes", device.cache_bytes},
      {"bus", known(device.bus)},
      {"numa_node", known(std::int64_t{device.numa_node})},
      {"peers", device.peers},
      {"link",
       {{"generation", device.link_generation == 0 ? json() : json(device.link_generation)},
        {"lanes", device.link_lanes == 0 ? json() : json(device.link_lanes)},
        {"best_generation", device.best_link_generation == 0 ? json() : json(device.best_link_generation)},
        {"best_lanes", device.best_link_lanes == 0 ? json() : json(device.best_link_lanes)},
        {"gb_per_s", positive(link_rate(device.link_generation, device.link_lanes))}}},
      {"access",
       {{"maps_host_memory", device.maps_host_memory},
        {"takes_registered_memory", device.takes_registered_memory},
        {"concurrent_managed_access", device.concurrent_managed_access},
        {"pageable_access", device.pageable_access},
        {"pageable_by_host_tables", device.pageable_by_host_tables},
        {"host_atomics", device.host_atomics}}}};
}

}  // namespace

std::string as_text(const report& facts) {
  lines out;
  const auto& host = facts.machine;
  out.head("ferry " + facts.ferry);
  out.row("Kokkos", facts.kokkos + ", " + facts.execution_space + " and " + facts.host_space + " (" +
                        std::to_string(facts.host_threads) + " threads)");
  out.row("backend", facts.backend);
  if (!facts.survey.toolkit.empty())
    out.row("CUDA", facts.survey.toolkit + ", driver " +
                        (facts.survey.driver.empty() ? "unknown" : facts.survey.driver) + " (up to CUDA " +
                        (facts.survey.runtime.empty() ? "unknown" : facts.survey.runtime) + ")");
  for (const auto& device : facts.survey.devices) print_device(out, facts, device);

  out.head("host");
  out.row("processor", host.processor);
  out.row("processors", std::to_string(host.usable_processors) + " usable of " +
                            std::to_string(host.processors) +
                            (host.quota > 0 ? ", quota " + number(host.quota) : ""));
  out.row("memory", in_gib(host.memory) + ", " + in_gib(host.available) + " available");
  out.row("memory limit", host.group_limit < 0 ? "none (control group)"
                                               : in_gib(host.group_limit) + " (control group), " +
                                                     in_gib(host.group_used) + " used");
  out.row("memlock limit", limit(host.lockable) + ", hard " + limit(host.lockable_hard));
  out.row("huge pages",
          (host.huge_pages.empty() ? "not in this kernel" : host.huge_pages) +
              (host.huge_pages_defrag.empty() ? "" : ", defrag " + host.huge_pages_defrag) +
              (host.huge_bytes < 0 ? ""
                                   : ", MADV_HUGEPAGE gave " + std::to_string(host.huge_bytes >> 20) +
                                         " of " + std::to_string(host.advised_bytes >> 20) + " MiB"));
  for (const auto& node : host.nodes)
    out.row("NUMA node " + std::to_string(node.number), "processors " + node.processors + ", " +
                                                            in_gib(node.bytes) + ", " +
                                                            in_gib(node.free_bytes) + " free");
  out.row("kernel", host.kernel);
  for (const auto& [name, value] : host.environment) out.row(name, value);

  out.head("rates, GB/s (blocks of " + std::to_string(facts.rates.bytes >> 20) + " MiB)");
  if (!facts.rates.skipped.empty()) out.row("not measured", facts.rates.skipped);
  if (!facts.rates.spaces.empty()) out.raw("  memory            allocation  to device  from device");
  for (const auto& entry : facts.rates.spaces) {
    char line[160];
    std::snprintf(line, sizeof line, "  %-18s%10s %10s %12s", entry.name.c_str(),
                  rate(entry.allocation).c_str(), rate(entry.to_device).c_str(),
                  rate(entry.from_device).c_str());
    out.raw(line);
  }

  out.head("profile of path::automatic");
  out.row("origin", facts.profile.origin);
  std::string measured;
  for (const auto& entry : facts.profile.measured)
    measured.append(measured.empty() ? "" : ", ").append(entry);
  out.row("measured", measured.empty() ? "nothing" : measured);

  out.head("checks");
  for (const auto& entry : facts.checks) {
    out.row(entry.name, std::string(name_of(entry.result)) + ": " + entry.finding);
    if (!entry.advice.empty()) out.row("", "  -> " + entry.advice);
  }
  return out.text();
}

std::string as_json(const report& facts) {
  const auto& host = facts.machine;
  json document;
  document["ferry"] = facts.ferry;
  document["kokkos"] = facts.kokkos;
  document["backend"] = facts.backend;
  document["execution_space"] = facts.execution_space;
  document["host_execution_space"] = facts.host_space;
  document["host_threads"] = facts.host_threads;
  document["host_threads_wake_microseconds"] =
      facts.wakes.threads < 2 ? json() : json(facts.wakes.seconds * 1e6);
  document["cuda_toolkit"] = known(facts.survey.toolkit);
  document["cuda_supported_by_driver"] = known(facts.survey.runtime);
  document["driver"] = known(facts.survey.driver);
  document["device"] = facts.survey.failure.empty() ? json(facts.device) : json();
  document["devices"] = json::array();
  for (const auto& device : facts.survey.devices) document["devices"].push_back(device_json(device));

  json& machine = document["host"];
  machine["processor"] = known(host.processor);
  machine["kernel"] = known(host.kernel);
  machine["processors"] = host.processors;
  machine["usable_processors"] = host.usable_processors;
  machine["processor_quota"] = positive(host.quota);
  machine["memory_bytes"] = known(host.memory);
  machine["available_bytes"] = known(host.available);
  machine["page_bytes"] = host.page_bytes;
  machine["memory_limit_bytes"] = known(host.group_limit);
  machine["memory_limit_used_bytes"] = known(host.group_used);
  machine["memlock_bytes"] = known(host.lockable);
  machine["memlock_hard_bytes"] = known(host.lockable_hard);
  machine["huge_pages"] = {{"setting", known(host.huge_pages)},
                           {"defrag", known(host.huge_pages_defrag)},
                           {"advised_bytes", host.advised_bytes},
                           {"huge_bytes", known(host.huge_bytes)}};
  machine["numa_balancing"] = host.balances_nodes;
  machine["numa_nodes"] = json::array();
  for (const auto& node : host.nodes)
    machine["numa_nodes"].push_back({{"number", node.number},
                                     {"processors", node.processors},
                                     {"bytes", node.bytes},
                                     {"free_bytes", node.free_bytes}});
  machine["environment"] = json::object();
  for (const auto& [name, value] : host.environment) machine["environment"][name] = value;

  json& rates = document["rates"];
  rates["block_bytes"] = facts.rates.bytes;
  rates["skipped"] = known(facts.rates.skipped);
  rates["spaces"] = json::array();
  for (const auto& entry : facts.rates.spaces)
    rates["spaces"].push_back({{"name", entry.name},
                               {"allocation_gb_per_s", positive(entry.allocation)},
                               {"to_device_gb_per_s", positive(entry.to_device)},
                               {"from_device_gb_per_s", positive(entry.from_device)},
                               {"made_of", known(entry.made_of)}});

  json& profile = document["profile"];
  profile["origin"] = facts.profile.origin;
  profile["measured"] = facts.profile.measured;
  profile["numbers"] = json::object();
  for (const auto& [name, value] : facts.profile.numbers) profile["numbers"][name] = value;

  document["checks"] = json::array();
  for (const auto& entry : facts.checks)
    document["checks"].push_back({{"name", entry.name},
                                  {"verdict", name_of(entry.result)},
                                  {"found", entry.finding},
                                  {"advice", known(entry.advice)}});
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace ferry_info
