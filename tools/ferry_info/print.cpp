// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ferry_info {

namespace {

using json = nlohmann::ordered_json;

constexpr double gib = 1073741824.0;

std::string number(double value, int digits = 1) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
std::string in_gib(std::int64_t bytes) {
  return bytes < 0 ? "unknown" : number(static_cast<double>(bytes) / gib) + " GiB";
}
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

std::string link_text(const ferry::detail::device_facts& one) {
  if (one.link_generation == 0 && one.link_lanes == 0) return "unknown";
  std::string made = "PCIe " + std::to_string(one.link_generation) + " x" + std::to_string(one.link_lanes);
  if (const double most = link_rate(one.link_generation, one.link_lanes); most > 0)
    made += " (" + number(most) + " GB/s each way)";
  if (one.best_link_generation != one.link_generation || one.best_link_lanes != one.link_lanes)
    made += ", at best PCIe " + std::to_string(one.best_link_generation) + " x" +
            std::to_string(one.best_link_lanes) + " (an idle device may rest at a lower generation)";
  return made;
}

void print_device(lines& out, const report& of, const ferry::detail::device_facts& one) {
  out.head("device " + std::to_string(one.number) + (one.number == of.device ? " (in use)" : ""));
  out.row("name", one.name);
  if (of.device_is_host()) return;
  out.row("architecture", one.architecture + ", " + std::to_string(one.processors) + " multiprocessors, " +
                              std::to_string(one.copy_engines) + " copy engines");
  out.row(
      "memory",
      in_gib(static_cast<std::int64_t>(one.memory_bytes)) +
          (one.free_bytes == 0 ? "" : ", " + in_gib(static_cast<std::int64_t>(one.free_bytes)) + " free"));
  out.row("bus", one.bus + (one.numa_node >= 0 ? ", NUMA node " + std::to_string(one.numa_node) : ""));
  out.row("link", link_text(one));
  out.row("maps host memory",
          std::string(yes(one.maps_host_memory)) + ", registered memory " + yes(one.takes_registered_memory));
  out.row("managed memory", std::string("concurrent access ") + yes(one.concurrent_managed_access));
  out.row("pageable memory", std::string(one.pageable_by_host_tables ? "reached (ATS)"
                                         : one.pageable_access       ? "reached (HMM)"
                                                                     : "not reached by kernels"));
  out.row("host atomics", one.host_atomics ? "by the link" : "not by the link");
  std::string peers;
  for (const int peer : one.peers) peers.append(peers.empty() ? "" : ", ").append(std::to_string(peer));
  out.row("reaches devices", peers);
}

json device_json(const ferry::detail::device_facts& one) {
  return {{"number", one.number},
          {"name", one.name},
          {"architecture", known(one.architecture)},
          {"multiprocessors", one.processors},
          {"copy_engines", one.copy_engines},
          {"memory_bytes", one.memory_bytes},
          {"free_bytes", one.free_bytes == 0 ? json() : json(one.free_bytes)},
          {"cache_bytes", one.cache_bytes},
          {"bus", known(one.bus)},
          {"numa_node", known(std::int64_t{one.numa_node})},
          {"peers", one.peers},
          {"link",
           {{"generation", one.link_generation == 0 ? json() : json(one.link_generation)},
            {"lanes", one.link_lanes == 0 ? json() : json(one.link_lanes)},
            {"best_generation", one.best_link_generation == 0 ? json() : json(one.best_link_generation)},
            {"best_lanes", one.best_link_lanes == 0 ? json() : json(one.best_link_lanes)},
            {"gb_per_s", positive(link_rate(one.link_generation, one.link_lanes))}}},
          {"access",
           {{"maps_host_memory", one.maps_host_memory},
            {"takes_registered_memory", one.takes_registered_memory},
            {"concurrent_managed_access", one.concurrent_managed_access},
            {"pageable_access", one.pageable_access},
            {"pageable_by_host_tables", one.pageable_by_host_tables},
            {"host_atomics", one.host_atomics}}}};
}

}  // namespace

std::string as_text(const report& of) {
  lines out;
  const auto& host = of.machine;
  out.head("ferry " + of.ferry);
  out.row("Kokkos", of.kokkos + ", " + of.execution_space + " and " + of.host_space + " (" +
                        std::to_string(of.host_threads) + " threads)");
  out.row("backend", of.backend);
  if (!of.survey.toolkit.empty())
    out.row("CUDA", of.survey.toolkit + ", driver " +
                        (of.survey.driver.empty() ? "unknown" : of.survey.driver) + " (up to CUDA " +
                        (of.survey.runtime.empty() ? "unknown" : of.survey.runtime) + ")");
  for (const auto& one : of.survey.devices) print_device(out, of, one);

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

  out.head("rates, GB/s (blocks of " + std::to_string(of.rates.bytes >> 20) + " MiB)");
  if (!of.rates.skipped.empty()) out.row("not measured", of.rates.skipped);
  if (!of.rates.spaces.empty()) out.raw("  memory            allocation  to device  from device");
  for (const auto& each : of.rates.spaces) {
    char line[160];
    std::snprintf(line, sizeof line, "  %-18s%10s %10s %12s", each.name.c_str(),
                  rate(each.allocation).c_str(), rate(each.to_device).c_str(),
                  rate(each.from_device).c_str());
    out.raw(line);
  }

  out.head("profile of path::automatic");
  out.row("origin", of.profile.origin);
  std::string measured;
  for (const auto& each : of.profile.measured) measured.append(measured.empty() ? "" : ", ").append(each);
  out.row("measured", measured.empty() ? "nothing" : measured);

  out.head("checks");
  for (const auto& each : of.checks) {
    out.row(each.name, std::string(name_of(each.result)) + ": " + each.found);
    if (!each.advice.empty()) out.row("", "  -> " + each.advice);
  }
  return out.text();
}

std::string as_json(const report& of) {
  const auto& host = of.machine;
  json made;
  made["ferry"] = of.ferry;
  made["kokkos"] = of.kokkos;
  made["backend"] = of.backend;
  made["execution_space"] = of.execution_space;
  made["host_execution_space"] = of.host_space;
  made["host_threads"] = of.host_threads;
  made["cuda_toolkit"] = known(of.survey.toolkit);
  made["cuda_supported_by_driver"] = known(of.survey.runtime);
  made["driver"] = known(of.survey.driver);
  made["device"] = of.survey.failure.empty() ? json(of.device) : json();
  made["devices"] = json::array();
  for (const auto& one : of.survey.devices) made["devices"].push_back(device_json(one));

  json& at = made["host"];
  at["processor"] = known(host.processor);
  at["kernel"] = known(host.kernel);
  at["processors"] = host.processors;
  at["usable_processors"] = host.usable_processors;
  at["processor_quota"] = positive(host.quota);
  at["memory_bytes"] = known(host.memory);
  at["available_bytes"] = known(host.available);
  at["page_bytes"] = host.page_bytes;
  at["memory_limit_bytes"] = known(host.group_limit);
  at["memory_limit_used_bytes"] = known(host.group_used);
  at["memlock_bytes"] = known(host.lockable);
  at["memlock_hard_bytes"] = known(host.lockable_hard);
  at["huge_pages"] = {{"setting", known(host.huge_pages)},
                      {"defrag", known(host.huge_pages_defrag)},
                      {"advised_bytes", host.advised_bytes},
                      {"huge_bytes", known(host.huge_bytes)}};
  at["numa_balancing"] = host.balances_nodes;
  at["numa_nodes"] = json::array();
  for (const auto& node : host.nodes)
    at["numa_nodes"].push_back({{"number", node.number},
                                {"processors", node.processors},
                                {"bytes", node.bytes},
                                {"free_bytes", node.free_bytes}});
  at["environment"] = json::object();
  for (const auto& [name, value] : host.environment) at["environment"][name] = value;

  json& rates = made["rates"];
  rates["block_bytes"] = of.rates.bytes;
  rates["skipped"] = known(of.rates.skipped);
  rates["spaces"] = json::array();
  for (const auto& each : of.rates.spaces)
    rates["spaces"].push_back({{"name", each.name},
                               {"allocation_gb_per_s", positive(each.allocation)},
                               {"to_device_gb_per_s", positive(each.to_device)},
                               {"from_device_gb_per_s", positive(each.from_device)},
                               {"made_of", known(each.made_of)}});

  json& profile = made["profile"];
  profile["origin"] = of.profile.origin;
  profile["measured"] = of.profile.measured;
  profile["numbers"] = json::object();
  for (const auto& [name, value] : of.profile.numbers) profile["numbers"][name] = value;

  made["checks"] = json::array();
  for (const auto& each : of.checks)
    made["checks"].push_back({{"name", each.name},
                              {"verdict", name_of(each.result)},
                              {"found", each.found},
                              {"advice", known(each.advice)}});
  return made.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace ferry_info
