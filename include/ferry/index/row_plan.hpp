#pragma once

#include <ferry/error.hpp>
#include <ferry/index/report.hpp>
#include <ferry/memory/access_tracker.hpp>
#include <ferry/memory/event.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

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

/// The indices of a batch, sorted once, for all verbs of that batch; made by make_plan. Its bounds policy was
/// applied when it was made. Copies share the arrays, which must be used by the execution space kind that
/// made them.
class row_plan {
 public:
  row_plan() = default;
  explicit row_plan(std::shared_ptr<plan_storage> storage) : storage_(std::move(storage)) {}

  /// Number of indices that the plan was made of.
  [[nodiscard]] std::int64_t positions() const { return storage_ ? storage_->positions : 0; }
  /// Number of rows of the tables that it is for.
  [[nodiscard]] std::int64_t rows() const { return storage_ ? storage_->rows : 0; }
  /// Number of different rows. Blocks until the plan has been made and fetches the number: not for the hot
  /// path.
  [[nodiscard]] std::int64_t unique_count() const { return storage_ ? storage_->read_unique_count() : 0; }
  /// The arrays, for kernels of the user's own.
  [[nodiscard]] const std::shared_ptr<plan_storage>& storage() const { return storage_; }

 private:
  std::shared_ptr<plan_storage> storage_;
};

}  // namespace ferry
