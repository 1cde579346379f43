// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/memory_report.hpp>

#include "registry.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace ferry {

namespace {

std::string bytes_text(std::size_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024.0 && unit + 1 < std::size(units); ++unit) value /= 1024.0;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

void append_holding(std::string& table, std::string_view name, std::size_t width, std::size_t current,
                    std::size_t peak, std::size_t count) {
  table.append(name).append(width - std::min(width, name.size()), ' ');
  char line[96];
  std::snprintf(line, sizeof line, "%12s%12s%8zu\n", bytes_text(current).c_str(), bytes_text(peak).c_str(),
                count);
  table.append(line);
}

}  // namespace

std::string memory_holdings::text() const {
  std::size_t width = 24;
  for (const space& holdings : spaces)
    for (const auto& entry : holdings.labels) width = std::max(width, entry.label.size() + 2);
  std::string table("memory");
  table.append(width - table.size(), ' ').append("         now        peak   count\n");
  for (const space& holdings : spaces) {
    append_holding(table, holdings.name, width, holdings.all.current, holdings.all.peak,
                   holdings.all.count);
    for (const auto& entry : holdings.labels)
      append_holding(table, std::string(2, ' ').append(entry.label), width, entry.current, entry.peak,
                     entry.count);
    if (holdings.all.reserved != 0)
      table.append("  (idle in pools: ").append(bytes_text(holdings.all.reserved)).append(")\n");
    if (holdings.all.budget != 0)
      table.append("  (budget: ").append(bytes_text(holdings.all.budget)).append(")\n");
  }
  return table;
}

memory_holdings memory_report() {
  const auto registry = detail::memory_registry::get();
  memory_holdings report;
  for (const detail::ledger* books : registry->spaces()) {
    const auto totals = books->counts();
    memory_holdings::space holdings{
        std::string(books->space()),
        {totals.current, totals.peak, totals.count, totals.total_count, books->idle_bytes(), books->budget()},
        {}};
    for (const auto& [label, counts] : books->accounts())
      if (counts.total_count != 0)
        holdings.labels.push_back({label, counts.current, counts.peak, counts.count});
    if (totals.total_count == 0) continue;
    std::stable_sort(holdings.labels.begin(), holdings.labels.end(),
                     [](const auto& a, const auto& b) { return a.current > b.current; });
    report.spaces.push_back(std::move(holdings));
  }
  return report;
}

}  // namespace ferry
