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

void append_holding(std::string& to, std::string_view name, std::size_t width, std::size_t current,
                    std::size_t peak, std::size_t count) {
  to.append(name).append(width - std::min(width, name.size()), ' ');
  char text[96];
  std::snprintf(text, sizeof text, "%12s%12s%8zu\n", bytes_text(current).c_str(), bytes_text(peak).c_str(),
                count);
  to.append(text);
}

}  // namespace

std::string memory_holdings::text() const {
  std::size_t width = 24;
  for (const space& each : spaces)
    for (const auto& of_label : each.labels) width = std::max(width, of_label.label.size() + 2);
  std::string made("memory");
  made.append(width - made.size(), ' ').append("         now        peak   count\n");
  for (const space& each : spaces) {
    append_holding(made, each.name, width, each.all.current, each.all.peak, each.all.count);
    for (const auto& of_label : each.labels)
      append_holding(made, std::string(2, ' ').append(of_label.label), width, of_label.current, of_label.peak,
                     of_label.count);
    if (each.all.reserved != 0)
      made.append("  (idle in pools: ").append(bytes_text(each.all.reserved)).append(")\n");
    if (each.all.budget != 0) made.append("  (budget: ").append(bytes_text(each.all.budget)).append(")\n");
  }
  return made;
}

memory_holdings memory_report() {
  const auto registry = detail::memory_registry::get();
  memory_holdings made;
  for (const detail::ledger* books : registry->spaces()) {
    const auto all = books->counts();
    memory_holdings::space one{
        std::string(books->space()),
        {all.current, all.peak, all.count, all.total_count, books->idle_bytes(), books->budget()},
        {}};
    for (const auto& [label, counts] : books->accounts())
      if (counts.total_count != 0) one.labels.push_back({label, counts.current, counts.peak, counts.count});
    if (all.total_count == 0) continue;
    std::stable_sort(one.labels.begin(), one.labels.end(),
                     [](const auto& a, const auto& b) { return a.current > b.current; });
    made.spaces.push_back(std::move(one));
  }
  return made;
}

}  // namespace ferry
