// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/changed_rows.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The rows of an array if they are adjacent runs of bytes, else all memory between its first and its last
/// element as one row.
rows_in_memory memory_of(const untyped_array& array);

/// The writes of one call of a verb to arrays whose changed rows are kept. For arrays that nobody tracks it
/// costs one test of a flag. The rows are marked after the writes: by a kernel on the instance of a device,
/// before the call's end is recorded, so that whoever waits for the call has the marks, and a graph repeats
/// them; by the calling thread on the host.
class change_marks {
 public:
  /// `captures`: the call is captured into a graph. Rows that could not be marked then change with each
  /// launch.
  explicit change_marks(bool captures = false) : captures_(captures) {}
  change_marks(const change_marks&) = delete;
  change_marks& operator=(const change_marks&) = delete;
  /// If no marks were set, after an exception: the work that was enqueued has ended, or belongs to a
  /// graph. It may have written any row.
  ~change_marks() { give_up(); }

  /// The call will write to the array: all of it, unless only() says which rows. `keep` holds an object until
  /// the work has ended, and returns the label of kernels that mark.
  void add(const untyped_array& array,
           function_ref<const std::string*(const std::shared_ptr<changed_rows>&)> keep);
  void add(const access_tracker& accesses, const rows_in_memory& memory,
           function_ref<const std::string*(const std::shared_ptr<changed_rows>&)> keep);

  /// The arrays as long as the table, which has `rows` rows, are written in these rows alone.
  /// @{
  void only(const plan_storage& plan) {
    only_ = true;
    rows_ = {plan.unique_rows, plan.positions, plan.unique_count, 8, true, false, false, plan.rows};
  }
  template <class Index>
  void only(const Index* list, std::int64_t count, std::int64_t rows, bool clamps) {
    only_ = true;
    rows_ = {list,   count, nullptr, static_cast<int>(sizeof(Index)), std::is_signed_v<Index>,
             clamps, false, rows};
  }
  /// @}
  /// The arrays that are added until the next call of this function are written in these rows of the plan
  /// alone, whose number `first` is their row 0: those of one of several tables.
  void only(const plan_storage& plan, std::int64_t first, std::int64_t rows) {
    only(plan);
    rows_.first = first;
    rows_.rows = rows;
    rows_.ascends = true;
    by_tables_ = true;
  }
  /// Any row may be written.
  void any_row() { only_ = false; }
  /// Nothing was written.
  void none() { only(static_cast<const std::int64_t*>(nullptr), 0, 0, false); }

  /// Marks what was written: by the calling thread, or by kernels in the order of the instance's work. Throws
  /// what a launch throws.
  /// @{
  void mark_on_host();
  void mark_on_device(const void* exec, bool is_of_default_space, int device);
  template <class Exec>
  void mark(const Exec& exec) {
    if constexpr (is_host_exec<Exec>)
      mark_on_host();
    else
      mark_on_device(&exec, std::is_same_v<Exec, Kokkos::DefaultExecutionSpace>,
                     execution_backend<Exec>::device_of(exec));
  }
  /// @}

 private:
  struct write {
    std::shared_ptr<changed_rows> rows;
    rows_in_memory memory;
    listed_numbers numbers{};  ///< of a call on several tables
  };

  [[nodiscard]] const listed_numbers& numbers_of(const write& entry) const {
    return by_tables_ ? entry.numbers : rows_;
  }
  [[nodiscard]] bool names_rows_of(const write& entry) const;
  bool enter(const std::shared_ptr<changed_rows>& rows, const rows_in_memory& memory);
  void give_up() noexcept;

  std::vector<write> writes_;
  listed_numbers rows_;
  const std::string* label_ = nullptr;
  bool only_ = false;
  bool by_tables_ = false;
  bool captures_;
};

/// Marks an array that host code writes, at the end of the writes, also if that is an exception.
class marked_write {
 public:
  explicit marked_write(const untyped_array& array);
  marked_write(const std::shared_ptr<access_tracker>& accesses, const rows_in_memory& memory);

 private:
  change_marks marks_;  // its destructor marks
};

}  // namespace ferry::detail
