// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace ferry::detail {

/// Errors in a batch that the host part of a verb finds.
struct host_findings {
  index_report report;
  unsigned int raised = 0;
};

/// A bad offset of the bags of `positions` positions, and its fault: "offsets[5] = 2, which ...".
/// `owner` follows the place.
[[gnu::cold]] std::string describe_offset(const index_report& report, std::int64_t positions,
                                          const std::string& owner = {});

/// The error of a report. `table` is the table, with rows of `width` elements. `values` are the rows of the
/// batch, if the verb scanned them.
[[gnu::cold]] std::exception_ptr found_error(const index_report& report, const std::string& verb,
                                             const array_note& table, const array_note& values,
                                             std::int64_t width, std::int64_t positions, bool signed_indices);

/// The tables of a verb on several of them, which have `bags` bags each.
struct table_notes {
  std::vector<array_note> tables;
  std::int64_t bags = 0;
};

template <class Tables>
std::shared_ptr<const table_notes> notes_of(const Tables& tables, std::int64_t bags) {
  auto notes = std::make_shared<table_notes>();
  notes->bags = bags;
  for (const auto& table : tables) notes->tables.push_back(table.note());
  return notes;
}

/// The error of a report of a verb on several tables. `values`: see above, here of rows for all tables.
[[gnu::cold]] std::exception_ptr found_error(const index_report& report, const std::string& verb,
                                             const table_notes& list, const array_note& values,
                                             std::int64_t positions, bool signed_indices);

}  // namespace ferry::detail
