// SPDX-License-Identifier: Apache-2.0
#include <ferry/profile/detail/path_rule.hpp>
#include <ferry/profile/explanation.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace ferry {

std::string explanation::to_string() const {
  std::string text = call + "\n";
  for (const candidate& entry : candidates) {
    char line[80];
    std::snprintf(line, sizeof line, "%c %-11s %10.3f ms %9.2f GB/s  ", entry.picked ? '*' : ' ',
                  std::string(name(entry.path)).c_str(), entry.seconds * 1e3, entry.gb_per_s);
    text.append(line).append(entry.reason).append("\n");
  }
  if (!compared.empty()) text.append("compared: ").append(compared).append("\n");
  return text + "profile: " + profile + "\n";
}

namespace detail {

namespace {

const char* limit_in_words(row_limit limit, path_kind path) {
  switch (limit) {
    case row_limit::device_memory:
      return "the device's memory";
    case row_limit::link_rows:
      return "requests over the link, however short the rows are";
    case row_limit::link_bytes:
      return "the link's bytes";
    case row_limit::translation:
      return path == path_kind::ordered ? "pages that the device looks up, shared by sorted rows"
                                        : "pages that the device looks up";
    case row_limit::host:
      return "the host's threads";
    default:
      return "the device and the host's threads together";
  }
}

const char* reason_in_words(choice_reason reason) {
  switch (reason) {
    case choice_reason::translated:
      return "in any order a row is within a tenth of the link's time";
    case choice_reason::short_batch:
      return "no other path saves 2.5 times what its start adds";
    case choice_reason::sorted_rows:
      return "sorted rows save 2.5 times what the sort adds";
    case choice_reason::host_rows:
      return "the host's threads save 2.5 times what their start adds";
    case choice_reason::shared_rows:
      return "the device and the host's threads are within four times each other's rate, and the rows take four "
             "times the start";
    default:
      return "the only way between these spaces";
  }
}

std::string comparison_in_words(const call_costs& costs, const move_facts& facts, path_set candidates,
                                choice_reason reason) {
  std::string text = reason_in_words(reason);
  text += ". A row: " + in_words(costs.link.row_ns, 2, "ns of the link");
  if (costs.random_look_up_ns > 0.0)
    text += ", look-ups " + in_words(costs.random_look_up_ns, 2, "ns, sorted ") +
            in_words(costs.sorted_look_up_ns, 2, "ns");
  if (candidates.contains(path_kind::staged) || candidates.contains(path_kind::cooperative))
    text += ", " + in_words(costs[path_kind::staged].row_ns, 2, "ns of the host's threads");
  return text + "; the table has " + in_words(static_cast<double>(facts.table_bytes) / 0x1p30, 2, "GiB") +
         ", pages stay translated up to " + in_words(costs.reach_gib, 2, "GiB") + ".";
}

}  // namespace

std::string in_words(double value, int digits, const char* unit) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f %s", digits, value, unit);
  return text;
}

explanation explain_choice(const machine_profile& profile, const move_facts& facts, path_set candidates) {
  const call_costs costs = costs_of(profile, facts);
  const path_choice choice = decide(costs, facts.positions, candidates);
  const double picked_seconds = std::max(costs[choice.path].seconds(facts.positions), 1e-12);
  explanation report;
  report.picked = choice.path;
  for (const path_kind path : every_path_kind) {
    if (!candidates.contains(path)) continue;
    const path_cost& cost = costs[path];
    explanation::candidate line;
    line.path = path;
    line.seconds = cost.seconds(facts.positions);
    line.gb_per_s = static_cast<double>(facts.row_bytes) / std::max(cost.row_ns, 1e-9);
    line.picked = path == choice.path;
    line.reason = in_words(cost.start_us, 0, "us to start, then ") + in_words(cost.row_ns, 2, "ns a row: ") +
                  limit_in_words(cost.limit, path);
    if (candidates.size() == 1)
      line.reason.append("; ").append(reason_in_words(choice.reason));
    else if (!line.picked)
      line.reason += "; " + in_words(line.seconds / picked_seconds, 2, "times the picked one");
    line.reason += ".";
    report.candidates.push_back(std::move(line));
  }
  std::stable_sort(report.candidates.begin(), report.candidates.end(), [](const auto& a, const auto& b) {
    return a.picked != b.picked ? a.picked : a.seconds < b.seconds;
  });
  if (candidates.size() > 1) report.compared = comparison_in_words(costs, facts, candidates, choice.reason);
  return report;
}

}  // namespace detail

}  // namespace ferry
