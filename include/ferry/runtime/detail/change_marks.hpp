// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/changed_rows.hpp>
#include <ferry/memory/detail/dynamic_array.hpp>
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

namespace ferry::detail {

/// The rows of an array where they are adjacent runs of bytes, else all memory between its first and its last
/// element as one row.
template <class T, class Space>
rows_in_memory memory_of(const array_ref<T, Space>& array) {
  constexpr auto bytes = static_cast<std::int64_t>(sizeof(T));
  rows_in_memory made;
  made.data = reinterpret_cast<const std::byte*>(array.data);
  if (array.size() == 0) return made;
  if (array.has_dense_rows() && array.row_stride() >= 0) {
    made.rows = array.rows();
    made.row_bytes = array.width() * bytes;
    made.stride = array.row_stride() * bytes;
    return made;
  }
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < array.rank; ++i)
    (array.strides[i] < 0 ? first : last) += (array.extents[i] - 1) * array.strides[i];
  made.data += first * bytes;
  made.rows = 1;
  made.row_bytes = made.stride = (last - first + 1) * bytes;
  return made;
}

/// The writes of one call of a verb to arrays whose changed rows are kept. Empty for all others, which it
/// costs the look at a flag. The rows are marked after the writes: by a kernel on the instance of a device,
/// before the call's end is recorded, so that whoever waits for the call has the marks, and a graph repeats
/// them; by the calling thread on the host.
class change_marks {
 public:
  /// `captures`: the call is captured into a graph. Rows that could not be marked then change with each
  /// launch.
  explicit change_marks(bool captures = false) : captures_(captures) {}
  change_marks(const change_marks&) = delete;
  change_marks& operator=(const change_marks&) = delete;
  /// Where no marks were made, after an exception: the work that was enqueued has ended, or belongs to a
  /// graph. It may have written any row.
  ~change_marks() { give_up(); }

  /// The call will write to the array: all of it, unless only() says which rows. `keep` holds an object until
  /// the work has ended, and returns the label of kernels that mark.
  template <class T, class Space, class Keep>
  void add(const array_ref<T, Space>& array, const Keep& keep) {
    if (array.accesses == nullptr) return;
    if (captures_) array.accesses->note_captured_write();
    if (array.accesses->is_marked()) [[unlikely]]
      add(*array.accesses, memory_of(array), keep);
  }
  template <class Keep>
  void add(const access_tracker& accesses, const rows_in_memory& memory, const Keep& keep) {
    for (const auto& each : accesses.marks())
      if (enter(each, memory)) label_ = keep(each);
  }

  /// The arrays as long as the table, which has `rows` rows, are written in these rows alone.
  /// @{
  void only(const plan_storage& plan) {
    only_ = true;
    rows_ = {plan.unique_rows, plan.positions, plan.unique_count, 8, true, false, plan.rows};
  }
  template <class Index>
  void only(const Index* list, std::int64_t count, std::int64_t rows, bool clamps) {
    only_ = true;
    rows_ = {list, count, nullptr, static_cast<int>(sizeof(Index)), std::is_signed_v<Index>, clamps, rows};
  }
  /// @}
  /// Any row may be written.
  void all() { only_ = false; }
  /// Nothing was written.
  void none() { only(static_cast<const std::int64_t*>(nullptr), 0, 0, false); }

  /// Marks what was written, on a device in the order of the instance's work. Throws what a launch throws.
  template <class Exec>
  void mark(const Exec& exec) {
    for (auto& each : writes_) {
      const auto all = each.to->range_of(each.memory);
      const bool by_rows = names_rows_of(each);
      const row_shift shift = by_rows ? each.to->shift_of(each.memory) : row_shift{};
      if constexpr (is_host_exec<Exec>) {
        if (by_rows)
          each.to->mark(rows_, shift);
        else
          each.to->mark(all.first, all.second);
      } else {
        device_marks* const by =
            std::is_same_v<Exec, Kokkos::DefaultExecutionSpace> ? each.to->device() : nullptr;
        const int device = execution_backend<Exec>::device_of(exec);
        const bool marked =
            by != nullptr && (by_rows ? by->mark(&exec, device, *label_, rows_, shift)
                                      : by->mark(&exec, device, *label_, all.first, all.second));
        if (!marked) each.to->distrust();
      }
    }
    writes_.clear();
  }

 private:
  struct write {
    std::shared_ptr<changed_rows> to;
    rows_in_memory memory;
  };

  [[nodiscard]] bool names_rows_of(const write& of) const {
    return only_ && (rows_.count == 0 || (of.memory.rows == rows_.rows && of.to->is_like(of.memory)));
  }
  bool enter(const std::shared_ptr<changed_rows>& to, const rows_in_memory& memory) {
    for (const auto& each : writes_)
      if (each.to == to && each.memory.data == memory.data && each.memory.rows == memory.rows &&
          each.memory.row_bytes == memory.row_bytes)
        return false;
    writes_.push_back({to, memory});
    return true;
  }
  void give_up() noexcept {
    for (auto& each : writes_) {
      const auto all = each.to->range_of(each.memory);
      each.to->mark(all.first, all.second);
      if (captures_) each.to->distrust();
    }
    writes_.clear();
  }

  dynamic_array<write> writes_;
  listed_numbers rows_;
  const std::string* label_ = nullptr;
  bool only_ = false;
  bool captures_;
};

/// Marks an array that host code writes, at the end of the writes, also where that is an exception.
template <class Dependent>
class basic_marked_write {
 public:
  template <class T, class Space>
  explicit basic_marked_write(const array_ref<T, Space>& array) {
    marks_.add(array, no_label);
  }
  basic_marked_write(const std::shared_ptr<access_tracker>& accesses, const rows_in_memory& memory) {
    if (accesses != nullptr && accesses->is_marked()) marks_.add(*accesses, memory, no_label);
  }

 private:
  static const std::string* no_label(const std::shared_ptr<changed_rows>&) { return nullptr; }

  change_marks marks_;  // its destructor marks
};
using marked_write = basic_marked_write<void>;

}  // namespace ferry::detail
