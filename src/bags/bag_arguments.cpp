// SPDX-License-Identifier: Apache-2.0
#include <ferry/bags/detail/bag_arguments.hpp>

#include <ferry/error.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ferry::detail {

namespace {

/// Describes the array of bags, and the number of tables that have bags in each of its rows.
std::string owners_of_bags(const untyped_array& pooled, std::int64_t tables) {
  std::string array = pooled.note().describe();
  return tables == 1 ? array : joined(tables, " tables and ", array);
}

}  // namespace

void require_a_bag(const char* verb, std::int64_t positions, const untyped_array& pooled) {
  if (pooled.shape.rows() == 0 && positions != 0)
    throw invalid_argument(joined("ferry::", verb, ": ", counted(positions, "index was", "indices were"),
                                  " given, but ", pooled.note().describe(), " has no bags"));
}

void require_bags(const char* verb, std::int64_t hotness, std::int64_t positions, const untyped_array& pooled,
                  std::int64_t tables) {
  const std::int64_t bags = pooled.shape.rows() * tables;
  const bool fits = hotness >= 0 && (bags == 0 || hotness <= positions / bags) && bags * hotness == positions;
  if (!fits)
    throw invalid_argument(joined("ferry::", verb, ": ", counted(positions, "index was", "indices were"),
                                  " given for the ", counted(bags, "bag", "bags"), " of ",
                                  counted(hotness, "position", "positions"), " of ",
                                  owners_of_bags(pooled, tables)));
}

void require_bags(const char* verb, const untyped_array& offsets, std::int64_t positions,
                  const untyped_array& pooled, std::int64_t tables) {
  const std::int64_t bags = pooled.shape.rows() * tables, count = offsets.shape.rows();
  require_rank_one(verb, offsets, "offsets");
  if (count != bags && count != bags + 1)
    throw invalid_argument(joined(
        "ferry::", verb, ": ", counted(count, "offset was", "offsets were"), " given for the ",
        counted(bags, "bag", "bags"), " of ", owners_of_bags(pooled, tables),
        ", must be one for each bag, with or without one more for the last end; or a plain integer, the positions of every bag"));
  if (count == 0) require_a_bag(verb, positions, pooled);
}

std::vector<std::int64_t> columns_of_tables(const char* verb, const std::vector<untyped_array>& tables,
                                            const untyped_array& batch) {
  if (tables.empty()) throw invalid_argument(joined("ferry::", verb, ": for_each_table has no tables"));
  require_dense_rows(verb, batch);
  std::vector<std::int64_t> columns;
  std::int64_t width = 0;
  for (const untyped_array& table : tables) {
    require_dense_rows(verb, table);
    if (table.shape.width() == 0)  // rows without elements have no column
      throw invalid_argument(
          joined("ferry::", verb, ": the rows of ", table.note().describe(), " have no elements"));
    columns.push_back(width);
    width += table.shape.width();
  }
  if (batch.shape.width() != width)
    throw invalid_argument(joined("ferry::", verb, ": the rows of ", tables.size(), " tables have ", width,
                                  " elements together, rows of ", batch.note().describe(), " have ",
                                  batch.shape.width()));
  for (const untyped_array& table : tables)
    if (overlap(table, batch))
      throw invalid_argument(joined("ferry::", verb, ": ", batch.note().describe(), " and ",
                                    table.note().describe(), " overlap in memory"));
  return columns;
}

void require_separate(const char* verb, const std::vector<untyped_array>& tables) {
  std::vector<const untyped_array*> by_address;
  for (const untyped_array& table : tables)
    if (table.shape.rows() != 0) by_address.push_back(&table);
  std::sort(by_address.begin(), by_address.end(),
            [](const untyped_array* a, const untyped_array* b) { return std::less<>()(a->data, b->data); });
  const auto end_of = [](const untyped_array& table) {
    const std::int64_t elements = (table.shape.rows() - 1) * table.shape.row_stride() + table.shape.width();
    return static_cast<const std::byte*>(table.data) +
           elements * static_cast<std::int64_t>(table.element_bytes);
  };
  // Tables that begin before the end of an earlier one are rare: columns of one array, or a table given twice.
  for (std::size_t t = 0; t < by_address.size(); ++t)
    for (std::size_t later = t + 1;
         later < by_address.size() &&
         std::less<>()(by_address[later]->data, static_cast<const void*>(end_of(*by_address[t])));
         ++later)
      if (overlap(*by_address[t], *by_address[later]))
        throw invalid_argument(joined("ferry::", verb, ": ", by_address[t]->note().describe(), " and ",
                                      by_address[later]->note().describe(),
                                      " of for_each_table overlap in memory"));
}

void require_states(const char* verb, std::size_t tables, std::size_t states) {
  if (states != tables)
    throw invalid_argument(joined("ferry::", verb, ": for_each_table has ", tables, " tables, but there are ",
                                  states, " states"));
}

void require_weights(const char* verb, const untyped_array& weights, std::int64_t positions,
                     const char* meaning) {
  require_rank_one(verb, weights, meaning);
  if (weights.shape.rows() != positions)
    throw invalid_argument(joined("ferry::", verb, ": ", weights.note().describe(), " has ",
                                  weights.shape.rows(), " ", meaning, " for ", positions, " indices"));
}

void require_maxima(const char* verb, const untyped_array& maxima, const untyped_array& pooled) {
  require_dense_rows(verb, maxima);
  if (maxima.shape.rows() != pooled.shape.rows() || maxima.shape.width() != pooled.shape.width())
    throw invalid_argument(joined("ferry::", verb, ": the positions of the maxima ", maxima.note().describe(),
                                  " need the extents of ", pooled.note().describe()));
}

void refuse_positions(const char* verb, const untyped_array& maxima, std::int64_t positions) {
  throw invalid_argument(joined("ferry::", verb, ": ", maxima.note().describe(),
                                " can't hold the positions of ", positions,
                                " indices; its elements must be int64"));
}

}  // namespace ferry::detail
