// SPDX-License-Identifier: Apache-2.0
#include <ferry/profile/detail/path_rule.hpp>

#include <ferry/memory/spaces.hpp>
#include <ferry/profile/explain.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::detail {

namespace {

class cost_reader {
 public:
  cost_reader(const machine_profile& profile, const move_facts& facts)
      : profile_(profile),
        facts_(facts),
        bytes_(static_cast<double>(std::max<std::int64_t>(facts.row_bytes, 0))),
        rows_(static_cast<double>(std::max<std::int64_t>(facts.positions, 1))),
        gib_(static_cast<double>(std::max<std::int64_t>(facts.table_bytes, 0)) / 0x1p30),
        reads_(facts.action != verb::scatter),
        writes_(facts.action != verb::gather && facts.action != verb::copy),
        table_on_device_(facts.table_space == device_space::name),
        batch_on_device_(facts.batch_space == device_space::name) {}

  [[nodiscard]] call_costs costs() const {
    call_costs costs;
    costs.link = facts_.action == verb::copy ? copied()
                 : batch_on_device_          ? reached()
                                             : with_batch(reached());
    look_up(costs);
    const double start = profile_.call_us;
    const double sort = facts_.planned ? 0.0 : profile_.sort_us + profile_.sort_ns_per_index * rows_ * 1e-3;
    path_cost direct = facts_.on_host ? host() : slower(costs.link, direct_look_up(costs));
    path_cost ordered = slower(costs.link, costs.sorted_look_up_ns);
    path_cost staged = host();
    path_cost cooperative = shared(ordered, staged);
    direct.start_us = start;
    ordered.start_us = start + profile_.ordered_call_us + sort;
    staged.start_us = profile_.staged_call_us;
    cooperative.start_us = profile_.cooperative_call_us + sort;
    costs.paths = {direct, ordered, staged, cooperative};
    return costs;
  }

 private:
  static path_cost slowest(std::initializer_list<path_cost> limits) {
    return *std::max_element(limits.begin(), limits.end(),
                             [](const path_cost& a, const path_cost& b) { return a.row_ns < b.row_ns; });
  }
  static path_cost slower(const path_cost& link, double look_up_ns) {
    return look_up_ns > link.row_ns ? path_cost{0, look_up_ns, row_limit::translation} : link;
  }
  [[nodiscard]] double accesses() const { return reads_ && writes_ ? 2.0 : 1.0; }
  [[nodiscard]] double shortest_row_ns() const {
    return accesses() * (table_on_device_                           ? profile_.device_row_ns
                         : facts_.table_space == pinned_space::name ? profile_.link_row_ns
                                                                    : profile_.mapped_row_ns);
  }

  /// A row of the table, by kernels of the device.
  [[nodiscard]] path_cost reached() const {
    if (table_on_device_) {
      const double bytes = bytes_ * (accesses() + (batch_on_device_ ? 1.0 : 0.0));
      return {0, std::max(shortest_row_ns(), bytes / profile_.device_gb_per_s), row_limit::device_memory};
    }
    const bool pinned = facts_.table_space == pinned_space::name;
    const double read = bytes_ / (pinned ? profile_.link_read_gb_per_s : profile_.mapped_read_gb_per_s);
    const double write = bytes_ / (pinned ? profile_.link_write_gb_per_s : profile_.mapped_write_gb_per_s);
    return slowest({{0, shortest_row_ns(), row_limit::link_rows},
                    {0, (reads_ ? read : 0.0) + (writes_ ? write : 0.0), row_limit::link_bytes}});
  }
  /// The rows of a batch in host memory travel, too.
  [[nodiscard]] path_cost with_batch(const path_cost& table) const {
    const double rate = writes_ ? profile_.link_read_gb_per_s : profile_.link_write_gb_per_s;
    return slowest({table, {0, bytes_ / rate, row_limit::link_bytes}});
  }
  /// A row of a copy: adjacent bytes.
  [[nodiscard]] path_cost copied() const {
    if (table_on_device_ && batch_on_device_)
      return {0, 2.0 * bytes_ / profile_.device_gb_per_s, row_limit::device_memory};
    const bool mapped = facts_.table_space == mapped_space::name || facts_.batch_space == mapped_space::name;
    const double read = mapped ? profile_.mapped_read_gb_per_s : profile_.dma_to_device_gb_per_s;
    const double write = mapped ? profile_.mapped_write_gb_per_s : profile_.dma_from_device_gb_per_s;
    return {0, std::max(table_on_device_ ? 0.0 : bytes_ / read, batch_on_device_ ? 0.0 : bytes_ / write),
            row_limit::link_bytes};
  }

  /// Sorted rows share the look-up of 16 adjacent small pages, or that of a large page. Of the groups of 16
  /// pages groups * (1 - e^(-rows / groups)) are touched.
  void look_up(call_costs& costs) const {
    if (facts_.action == verb::copy || facts_.on_host) return;
    const double row = shortest_row_ns();
    const auto uncovered_part = [&](double reach_gib) {
      costs.reach_gib = reach_gib;
      return std::max(0.0, 1.0 - reach_gib / std::max(gib_, 1e-9));
    };
    if (table_on_device_) {
      costs.random_look_up_ns = profile_.device_miss_ns * uncovered_part(profile_.device_reach_gib);
    } else if (facts_.table_space == pinned_space::name) {
      const double part = uncovered_part(profile_.pinned_reach_gib);
      const double groups = std::max(1.0, gib_ * 0x1p30 / std::max(page_group_bytes, bytes_));
      costs.random_look_up_ns = profile_.pinned_miss_ns * part;
      costs.sorted_look_up_ns =
          profile_.pinned_group_ns * part * groups * -std::expm1(-rows_ / groups) / rows_;
    } else if (uncovered_part(mapped_reach_gib) > 0.0) {
      costs.random_look_up_ns = row * profile_.mapped_growth * std::log2(gib_ / mapped_reach_gib);
    }
  }
  /// The time of a row in the order that path::direct has. With a plan, verbs that write go in the order of
  /// the table; the threads of the whole device then ask for pages that few teams of path::ordered share, and
  /// sorted look-ups take 1.5 times as long (measured on an H200, tables of 16 and 64 GiB). Mapped rows that
  /// are written in any order take longer the longer they are: of 256 and 512 bytes 1.08 times the time of
  /// sorted ones in 16 GiB, 1.24 and 1.27 times in 32, 1.21 and 1.25 times in 64 (H200).
  [[nodiscard]] double direct_look_up(const call_costs& costs) const {
    if (costs.random_look_up_ns <= 0.0) return 0.0;
    const double random = shortest_row_ns() + costs.random_look_up_ns;
    if (!writes_) return random;
    if (facts_.planned) return std::min(random, 1.5 * costs.sorted_look_up_ns);
    if (facts_.table_space != mapped_space::name) return random;
    constexpr double reach_gib = 12.0, excess = 0.32;
    const double part = std::max(0.0, 1.0 - reach_gib / gib_);
    return std::max(random, costs.link.row_ns + excess * part * bytes_ / profile_.mapped_write_gb_per_s);
  }

  /// Rows by the threads of the host, with the transfer to or from the device.
  [[nodiscard]] path_cost host() const {
    const double read = bytes_ / profile_.host_read_gb_per_s;
    if (facts_.action == verb::copy || (table_on_device_ && !writes_)) return {0, read, row_limit::host};
    const double row =
        (reads_ ? profile_.host_read_row_ns : 0.0) + (writes_ ? profile_.host_write_row_ns : 0.0);
    const double moved = (reads_ ? read : 0.0) + (writes_ ? bytes_ / profile_.host_write_gb_per_s : 0.0);
    return {0, std::max(row, moved), row_limit::host};
  }

  /// Rows that the device takes from one end of the sorted list, and the host's threads from the other.
  [[nodiscard]] path_cost shared(const path_cost& device, const path_cost& threads) const {
    const double sum = device.row_ns + threads.row_ns;
    return slowest({{0, sum > 0.0 ? device.row_ns * threads.row_ns / sum : 0.0, row_limit::both},
                    {0, bytes_ / profile_.cooperative_gb_per_s, row_limit::link_bytes}});
  }

  const machine_profile& profile_;
  const move_facts& facts_;
  double bytes_, rows_, gib_;
  bool reads_, writes_, table_on_device_, batch_on_device_;
};

}  // namespace

call_costs costs_of(const machine_profile& profile, const move_facts& facts) {
  return cost_reader(profile, facts).costs();
}

path_choice decide(const call_costs& costs, std::int64_t rows, path_set candidates) {
  // The tenth is what a choice may miss. The others were fitted to the grids of docs/decisions.md: a start
  // counts 2.5 times, because part of it hides behind no row, and the start of path::cooperative four times.
  constexpr double link_slack = 1.1, repaid = 2.5, shared = 4.0, long_batch = 4.0;
  const path_kind first = candidates.first();
  if (candidates.size() <= 1) return {first, choice_reason::only_path};
  const path_cost& direct = costs[path_kind::direct];
  const path_cost& ordered = costs[path_kind::ordered];
  const path_cost& staged = costs[path_kind::staged];
  const path_cost& cooperative = costs[path_kind::cooperative];
  const double link_ns = link_slack * costs.link.row_ns;
  if (direct.row_ns <= link_ns) return {first, choice_reason::translated};

  const bool link_is_busy = ordered.row_ns <= link_ns;
  const bool sorts =
      candidates.contains(path_kind::ordered) && (link_is_busy || !candidates.contains(path_kind::staged));
  if (!sorts && !candidates.contains(path_kind::staged)) return {first, choice_reason::short_batch};
  const path_cost& best = sorts ? ordered : staged;
  const double saved_us = direct.rows_us(rows) - best.rows_us(rows);
  if (saved_us <= repaid * std::max(0.0, best.start_us - direct.start_us))
    return {first, choice_reason::short_batch};

  const auto [faster, slower] = std::minmax(ordered.row_ns, staged.row_ns);
  const bool link_is_full = link_is_busy && costs.link.limit == row_limit::link_bytes;
  if (candidates.contains(path_kind::cooperative) && !link_is_full && slower <= shared * faster &&
      best.rows_us(rows) >= long_batch * cooperative.start_us)
    return {path_kind::cooperative, choice_reason::shared_rows};
  return sorts ? path_choice{path_kind::ordered, choice_reason::sorted_rows}
               : path_choice{path_kind::staged, choice_reason::host_rows};
}

path_kind choose_route(const machine_profile& profile, const move_facts& facts, path_set candidates) {
  if (candidates.size() <= 1) return candidates.first();
  return decide(costs_of(profile, facts), facts.positions, candidates).path;
}

void fit_reach(const std::vector<double>& gib, const std::vector<double>& extra, machine_profile& profile) {
  if (gib.empty()) return;
  if (*std::max_element(extra.begin(), extra.end()) < 0.5 * profile.link_row_ns) {
    profile.pinned_reach_gib = std::max(machine_profile().pinned_reach_gib, gib.back());
    return;
  }
  double least = -1.0;
  for (double reach = gib.front() / 4.0; reach < gib.back(); reach *= 1.02) {
    double xx = 0.0, xy = 0.0, yy = 0.0;
    for (std::size_t i = 0; i < gib.size(); ++i) {
      const double x = std::max(0.0, 1.0 - reach / gib[i]);
      xx += x * x;
      xy += x * extra[i];
      yy += extra[i] * extra[i];
    }
    const double error = yy - xy * xy / xx;
    if (least >= 0.0 && error >= least) continue;
    least = error;
    profile.pinned_reach_gib = reach;
    profile.pinned_miss_ns = xy / xx;
  }
}

namespace {

const char* limit_in_words(row_limit limit, path_kind path) {
  if (limit == row_limit::translation && path == path_kind::ordered)
    return "pages that the device looks up, shared by sorted rows";
  constexpr const char* words[] = {
      "the device's memory", "requests over the link, however short the rows are",
      "the link's bytes",    "pages that the device looks up",
      "the host's threads",  "the device and the host's threads together"};
  return words[static_cast<std::size_t>(limit)];
}

const char* reason_in_words(choice_reason reason) {
  constexpr const char* words[] = {
      "the only way between these spaces",
      "in any order a row is within a tenth of the link's time",
      "no other path saves 2.5 times what its start adds",
      "sorted rows save 2.5 times what the sort adds",
      "the host's threads save 2.5 times what their start adds",
      "the device and the host's threads are within four times each other's rate, and the rows take four times the start"};
  return words[static_cast<std::size_t>(reason)];
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

}  // namespace ferry::detail

std::string ferry::explanation::to_string() const {
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
