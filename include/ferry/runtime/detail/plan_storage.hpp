#pragma once

#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

namespace ferry {

/// The arrays of a plan, in the memory of the execution space that made it or in the caller's workspace.
/// Shared by the plan and by the verbs in flight that use it.
struct plan_storage {
  std::int64_t positions = 0;
  std::int64_t rows = 0;
  std::int64_t* row_of = nullptr;  ///< [positions] row of each position; -1 where it has none
  std::int64_t* order = nullptr;   ///< [positions] positions sorted by row, equal rows in batch order
  const std::uint64_t* sorted_rows = nullptr;  ///< [positions] row of order[k]; `rows` where it has none
  std::int64_t* inverse = nullptr;        ///< [positions] segment of each position; -1 where it has no row
  std::int64_t* unique_rows = nullptr;    ///< [unique_count] ascending
  std::int64_t* segment_begin = nullptr;  ///< [unique_count + 1] where each row's positions begin in `order`
  std::int64_t* unique_count = nullptr;   ///< one number, known only where the plan was made
  /// [run_count + 1] where each run begins in `unique_rows`. A run is a longest piece of neighbouring rows,
  /// unique_rows[i + 1] == unique_rows[i] + 1: what one block transfer can carry.
  std::int64_t* run_begin = nullptr;
  std::int64_t* run_count = nullptr;  ///< one number, known only where the plan was made
  std::shared_ptr<report_writer> report;
  bool checked = true;
  bool signed_indices = true;
  std::string_view bounds;
  std::string_view backend;
  std::string_view space;  ///< name of the memory space of the arrays
  bool on_host = false;    ///< made by a host execution space
  event_handle made;
  instance_id made_by = 0;
  std::shared_ptr<void> memory;  ///< of all the arrays: a lease that notes the work that uses them
  std::shared_ptr<access_tracker> accesses;  ///< of the tensor that is the caller's workspace
  /// How the backend that made the plan reads what lies in its memory. The first waits until the plan is made.
  std::int64_t (*unique_count_of)(const plan_storage&) = nullptr;
  index_report (*report_of)(const plan_storage&) = nullptr;

  [[nodiscard]] std::int64_t read_unique_count() const { return unique_count_of(*this); }
  [[nodiscard]] index_report read_report() const { return report_of(*this); }
};

}  // namespace ferry
