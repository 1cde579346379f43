// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ferry::detail {

/// Errors in a batch that the host part of a verb finds.
struct host_findings {
  index_report report;
  unsigned int raised = 0;
};

/// A bad offset of the bags of `positions` positions, and its fault: "offsets[5] = 2, which ...".
/// `owner` follows the offset.
[[gnu::cold]] std::string describe_offset(const index_report& report, std::int64_t positions,
                                          const std::string& owner = {});

/// The error of a report. `table` is the table, with rows of `width` elements. `values` are the rows of the
/// batch, if the verb scanned them.
[[gnu::cold]] std::exception_ptr found_error(const index_report& report, const std::string& verb,
                                             const array_note& table, const array_note& values,
                                             std::int64_t width, std::int64_t positions, bool signed_indices);

/// The tables of a verb on several of them, which have `bags` bags each. Without bags the table that is
/// written and the one that is read, which the report numbers in this order.
struct table_descriptions {
  std::vector<array_note> tables;
  std::int64_t bags = 0;
};

template <class Tables>
std::shared_ptr<const table_descriptions> descriptions_of(const Tables& tables, std::int64_t bags) {
  auto list = std::make_shared<table_descriptions>();
  list->bags = bags;
  for (const auto& table : tables) list->tables.push_back(table.note());
  return list;
}

/// The error of a report of a verb on several tables. `values`: see above, here of rows for all tables.
[[gnu::cold]] std::exception_ptr found_error(const index_report& report, const std::string& verb,
                                             const table_descriptions& list, const array_note& values,
                                             std::int64_t positions, bool signed_indices);

/// Prints an error that can't be thrown.
[[gnu::cold]] void print_unheard(const std::exception_ptr& lost) noexcept;

/// The findings of detached work that has ended, until a wait on the same instance throws them: each once,
/// the oldest first. Those that nobody throws are printed. Thread-safe.
class unheard_findings {
 public:
  unheard_findings() = default;
  unheard_findings(const unheard_findings&) = delete;
  unheard_findings& operator=(const unheard_findings&) = delete;
  ~unheard_findings() {
    for (const entry& finding : list_) print_unheard(finding.error);
  }

  /// Prints the finding at once if the list is full: in a loop that never waits it would grow for ever.
  [[gnu::cold]] void add(instance_id who, const std::exception_ptr& error) noexcept;
  /// The oldest finding of an instance, null for none.
  [[nodiscard]] std::exception_ptr take(instance_id who) noexcept;

 private:
  static constexpr std::size_t max_findings = 64;
  struct entry {
    instance_id who;
    std::exception_ptr error;
  };

  std::mutex guard_;
  std::vector<entry> list_;
};

}  // namespace ferry::detail
