// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/memory_report.hpp>

#include "ledger.hpp"

#include <ferry/memory/budget.hpp>
#include <ferry/memory/trim.hpp>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

namespace ferry {

namespace {

space_statistics statistics_of(const detail::ledger& books) {
  const auto totals = books.counts();
  return {totals.current, totals.peak, totals.count, totals.total_count, books.idle_bytes(), books.budget()};
}

std::vector<label_statistics> labels_of(const detail::ledger& books) {
  std::vector<label_statistics> labels;
  for (const auto& [label, counts] : books.accounts())
    if (counts.total_count != 0) labels.push_back({label, counts.current, counts.peak, counts.count});
  return labels;
}

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
    append_holding(table, holdings.name, width, holdings.all.current, holdings.all.peak, holdings.all.count);
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
    memory_holdings::space holdings{std::string(books->space()), statistics_of(*books), labels_of(*books)};
    if (holdings.all.total_count == 0) continue;
    std::stable_sort(holdings.labels.begin(), holdings.labels.end(),
                     [](const auto& a, const auto& b) { return a.current > b.current; });
    report.spaces.push_back(std::move(holdings));
  }
  return report;
}

std::size_t trim() { return detail::memory_registry::get()->trim(detail::in_flight::skip); }

namespace detail {

space_statistics statistics_of(std::string_view account) {
  return ferry::statistics_of(memory_registry::get()->ledger_of(account));
}

std::vector<label_statistics> labels_of(std::string_view account) {
  return ferry::labels_of(memory_registry::get()->ledger_of(account));
}

void reset_peak_of(std::string_view account) { memory_registry::get()->ledger_of(account).reset_peak(); }

void set_budget_of(std::string_view account, std::size_t bytes) {
  memory_registry::get()->ledger_of(account).set_budget(bytes);
}

std::size_t trim_space(std::string_view space) {
  return memory_registry::get()->trim(in_flight::skip, space);
}

bool is_within_budget(std::string_view account) {
  return memory_registry::get()->ledger_of(account).is_within_budget();
}

void add_idle_memory(std::string_view account, std::weak_ptr<idle_memory> pool) {
  memory_registry::get()->ledger_of(account).add_pool(std::move(pool));
}

}  // namespace detail
}  // namespace ferry
