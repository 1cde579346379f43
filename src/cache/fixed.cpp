// SPDX-License-Identifier: Apache-2.0
#include <ferry/cache/fixed.hpp>

#include <ferry/error.hpp>

#include <algorithm>
#include <string>

namespace ferry::cache {

std::int64_t fixed::most_rows(std::int64_t table_rows) const {
  return static_cast<std::int64_t>(rows_from_start(table_rows).size());
}

std::vector<std::int64_t> fixed::rows_from_start(std::int64_t table_rows) const {
  std::vector<std::int64_t> list = rows.list();
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  if (!list.empty() && (list.front() < 0 || list.back() >= table_rows))
    throw out_of_range("ferry::cache::fixed: row " +
                       std::to_string(list.front() < 0 ? list.front() : list.back()) +
                       " is outside of a table of " + std::to_string(table_rows) + " rows");
  return list;
}

}  // namespace ferry::cache
