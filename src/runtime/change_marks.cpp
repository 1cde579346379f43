// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/change_marks.hpp>

#include <algorithm>

namespace ferry::detail {

rows_in_memory memory_of(const untyped_array& array) {
  const array_shape& shape = array.shape;
  const auto bytes = static_cast<std::int64_t>(array.element_bytes);
  rows_in_memory memory;
  memory.data = static_cast<const std::byte*>(array.data);
  if (shape.size() == 0) return memory;
  if (shape.has_dense_rows() && shape.row_stride() >= 0) {
    memory.rows = shape.rows();
    memory.row_bytes = shape.width() * bytes;
    memory.stride = shape.row_stride() * bytes;
    // Codes of fewer than 8 bits count as elements of a byte, but a row ends where the next one begins.
    if (memory.rows > 1 && memory.stride > 0) memory.row_bytes = std::min(memory.row_bytes, memory.stride);
    return memory;
  }
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < shape.rank; ++i)
    (shape.strides[i] < 0 ? first : last) += (shape.extents[i] - 1) * shape.strides[i];
  memory.data += first * bytes;
  memory.rows = 1;
  memory.row_bytes = memory.stride = (last - first + 1) * bytes;
  return memory;
}

void change_marks::add(const untyped_array& array,
                       function_ref<const std::string*(const std::shared_ptr<changed_rows>&)> keep) {
  access_tracker* const accesses = array.shape.accesses.get();
  if (accesses == nullptr) return;
  if (captures_) accesses->note_captured_write();
  if (accesses->is_marked()) [[unlikely]]
    add(*accesses, memory_of(array), keep);
}

void change_marks::add(const access_tracker& accesses, const rows_in_memory& memory,
                       function_ref<const std::string*(const std::shared_ptr<changed_rows>&)> keep) {
  for (const auto& rows : accesses.marks())
    if (enter(rows, memory)) label_ = keep(rows);
}

void change_marks::mark_on_host() {
  for (auto& entry : writes_) {
    if (names_rows_of(entry)) {
      entry.rows->mark(numbers_of(entry), entry.rows->shift_of(entry.memory));
    } else {
      const auto range = entry.rows->range_of(entry.memory);
      entry.rows->mark(range.first, range.second);
    }
  }
  writes_.clear();
}

void change_marks::mark_on_device(const void* exec, bool is_of_default_space, int device) {
  for (auto& entry : writes_) {
    const auto range = entry.rows->range_of(entry.memory);
    const bool by_rows = names_rows_of(entry);
    const row_shift shift = by_rows ? entry.rows->shift_of(entry.memory) : row_shift{};
    device_marks* const kernels = is_of_default_space ? entry.rows->device() : nullptr;
    const bool marked =
        kernels != nullptr && (by_rows ? kernels->mark(exec, device, *label_, numbers_of(entry), shift)
                                       : kernels->mark(exec, device, *label_, range.first, range.second));
    if (!marked) entry.rows->distrust();
  }
  writes_.clear();
}

bool change_marks::names_rows_of(const write& entry) const {
  const listed_numbers& numbers = numbers_of(entry);
  return only_ &&
         (numbers.count == 0 || (entry.memory.rows == numbers.rows && entry.rows->is_like(entry.memory)));
}

bool change_marks::enter(const std::shared_ptr<changed_rows>& rows, const rows_in_memory& memory) {
  for (const auto& entry : writes_)
    if (entry.rows == rows && entry.memory.data == memory.data && entry.memory.rows == memory.rows &&
        entry.memory.row_bytes == memory.row_bytes)
      return false;
  writes_.push_back({rows, memory, by_tables_ ? rows_ : listed_numbers{}});
  return true;
}

void change_marks::give_up() noexcept {
  for (auto& entry : writes_) {
    const auto range = entry.rows->range_of(entry.memory);
    entry.rows->mark(range.first, range.second);
    if (captures_) entry.rows->distrust();
  }
  writes_.clear();
}

namespace {

/// The host marks by itself, so no kernel needs a label.
constexpr auto keep_no_label = [](const std::shared_ptr<changed_rows>&) -> const std::string* {
  return nullptr;
};

}  // namespace

marked_write::marked_write(const untyped_array& array) { marks_.add(array, keep_no_label); }

marked_write::marked_write(const std::shared_ptr<access_tracker>& accesses, const rows_in_memory& memory) {
  if (accesses != nullptr && accesses->is_marked()) marks_.add(*accesses, memory, keep_no_label);
}

}  // namespace ferry::detail
