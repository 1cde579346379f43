// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

namespace ferry::detail {

/// The rows of the values of a plan whose positions share them, as those of a bag do. In the
/// memory of the plan's arrays.
struct shared_values {
  std::int64_t* rows = nullptr;  ///< [positions] row of the values for each element of `order`; null: `order`
  double* factors = nullptr;     ///< [positions] what each of them is multiplied by; null: 1
  std::int64_t* chosen =
      nullptr;  ///< [rows x width] the only position that gets an element; null: all get it
  std::int64_t chosen_count = 0;
};

/// The arrays of a plan, in scratch memory of its execution space or in the caller's workspace. Shared by the
/// plan and the verbs in flight that use it.
struct plan_storage {
  std::int64_t positions = 0;
  std::int64_t rows = 0;
  std::int64_t* row_of = nullptr;  ///< [positions] row of each position; -1 for none
  std::int64_t* order = nullptr;   ///< [positions] positions sorted by row, equal rows in batch order
  const std::uint64_t* sorted_rows = nullptr;  ///< [positions] row of order[k]; `rows` for none
  std::int64_t* inverse = nullptr;             ///< [positions] segment of each position; -1 for no row
  std::int64_t* unique_rows = nullptr;         ///< [unique_count] ascending
  std::int64_t* segment_begin = nullptr;  ///< [unique_count + 1] where each row's positions begin in `order`
  std::int64_t* unique_count = nullptr;   ///< one number, in the memory of the arrays
  /// [run_count + 1] where each run begins in `unique_rows`. A run is a maximal range of consecutive rows,
  /// unique_rows[i + 1] == unique_rows[i] + 1, which one block transfer can move.
  std::int64_t* run_begin = nullptr;
  std::int64_t* run_count = nullptr;  ///< one number, in the memory of the arrays
  /// A flag of a device's plan: 0 if no row has as many positions as its kernels sum in pieces. In the memory
  /// of the arrays; null if that is unknown.
  const std::int64_t* long_found = nullptr;
  shared_values values{};
  array_note values_description{};     ///< the caller's array that these values come from
  std::shared_ptr<plan_storage> base;  ///< the plan whose arrays this one shares
  std::shared_ptr<report_writer> report;
  bool checked = true;
  bool signed_indices = true;
  std::string_view bounds;
  std::string_view backend;
  std::string_view space;  ///< name of the memory space of the arrays
  bool on_host = false;    ///< made by a host execution space
  int device = 0;          ///< that made the plan
  event_handle completion;
  instance_id made_by = 0;
  std::shared_ptr<void> memory;              ///< lease of all arrays, which records the work that uses them
  std::shared_ptr<access_tracker> accesses;  ///< of the caller's workspace, if that is a tensor
  /// Functions of the backend that made the plan, which read its memory. The first waits until the plan is
  /// made, the second comes after that.
  std::int64_t (*unique_count_of)(const plan_storage&) = nullptr;
  index_report (*report_of)(const report_writer&) = nullptr;

  /// The row of the values for each element of `order`.
  [[nodiscard]] const std::int64_t* value_rows() const {
    return values.rows != nullptr ? values.rows : order;
  }
  [[nodiscard]] std::int64_t read_unique_count() const { return unique_count_of(*this); }
  [[nodiscard]] index_report read_report() const { return report_of(*report); }
};

}  // namespace ferry::detail
