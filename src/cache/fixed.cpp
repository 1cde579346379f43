// SPDX-License-Identifier: Apache-2.0
#include <ferry/cache/fixed.hpp>

#include <ferry/error.hpp>

#include <algorithm>
#include <string>

namespace ferry::cache {

std::int64_t fixed::most_rows(std::int64_t all) const {
  return static_cast<std::int64_t>(rows_from_start(all).size());
}

std::vector<std::int64_t> fixed::rows_from_start(std::int64_t all) const {
  std::vector<std::int64_t> kept = rows.list();
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  if (!kept.empty() && (kept.front() < 0 || kept.back() >= all))
    throw out_of_range("ferry::cache::fixed: row " +
                       std::to_string(kept.front() < 0 ? kept.front() : kept.back()) +
                       " is outside of a table of " + std::to_string(all) + " rows");
  return kept;
}

}  // namespace ferry::cache
