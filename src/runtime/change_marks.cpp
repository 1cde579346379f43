// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/change_marks.hpp>

namespace ferry::detail {

void change_marks::add(const access_tracker& accesses, const rows_in_memory& memory,
                       function_ref<const std::string*(const std::shared_ptr<changed_rows>&)> keep) {
  for (const auto& rows : accesses.marks())
    if (enter(rows, memory)) label_ = keep(rows);
}

void change_marks::mark_on_host() {
  for (auto& entry : writes_) {
    if (names_rows_of(entry)) {
      entry.to->mark(rows_, entry.to->shift_of(entry.memory));
    } else {
      const auto all = entry.to->range_of(entry.memory);
      entry.to->mark(all.first, all.second);
    }
  }
  writes_.clear();
}

void change_marks::mark_on_device(const void* exec, bool is_of_default_space, int device) {
  for (auto& entry : writes_) {
    const auto all = entry.to->range_of(entry.memory);
    const bool by_rows = names_rows_of(entry);
    const row_shift shift = by_rows ? entry.to->shift_of(entry.memory) : row_shift{};
    device_marks* const kernels = is_of_default_space ? entry.to->device() : nullptr;
    const bool marked =
        kernels != nullptr && (by_rows ? kernels->mark(exec, device, *label_, rows_, shift)
                                       : kernels->mark(exec, device, *label_, all.first, all.second));
    if (!marked) entry.to->distrust();
  }
  writes_.clear();
}

bool change_marks::names_rows_of(const write& entry) const {
  return only_ && (rows_.count == 0 || (entry.memory.rows == rows_.rows && entry.to->is_like(entry.memory)));
}

bool change_marks::enter(const std::shared_ptr<changed_rows>& rows, const rows_in_memory& memory) {
  for (const auto& entry : writes_)
    if (entry.to == rows && entry.memory.data == memory.data && entry.memory.rows == memory.rows &&
        entry.memory.row_bytes == memory.row_bytes)
      return false;
  writes_.push_back({rows, memory});
  return true;
}

void change_marks::give_up() noexcept {
  for (auto& entry : writes_) {
    const auto all = entry.to->range_of(entry.memory);
    entry.to->mark(all.first, all.second);
    if (captures_) entry.to->distrust();
  }
  writes_.clear();
}

marked_write::marked_write(const std::shared_ptr<access_tracker>& accesses, const rows_in_memory& memory) {
  if (accesses != nullptr && accesses->is_marked()) marks_.add(*accesses, memory, no_label);
}

}  // namespace ferry::detail
