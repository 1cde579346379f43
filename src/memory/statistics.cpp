// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/statistics.hpp>

#include "registry.hpp"

namespace ferry::detail {

space_statistics statistics_of(std::string_view account) {
  const auto registry = memory_registry::get();
  const ledger& books = registry->ledger_of(account);
  const auto totals = books.counts();
  return {totals.current, totals.peak, totals.count, totals.total_count, books.idle_bytes(), books.budget()};
}

std::vector<label_statistics> labels_of(std::string_view account) {
  const auto registry = memory_registry::get();
  std::vector<label_statistics> labels;
  for (const auto& [label, counts] : registry->ledger_of(account).accounts())
    if (counts.total_count != 0) labels.push_back({label, counts.current, counts.peak, counts.count});
  return labels;
}

void reset_peak_of(std::string_view account) { memory_registry::get()->ledger_of(account).reset_peak(); }

}  // namespace ferry::detail
