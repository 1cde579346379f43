// SPDX-License-Identifier: Apache-2.0
#include "tracked_arrays.hpp"

#include "../../backends/enabled.hpp"
#include "marks_on.hpp"

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/changed_rows.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

void tracked_arrays::track(const std::string& entry) {
  if (!tracks(entry)) entries_.push_back(entry);
}

bool tracked_arrays::tracks(const std::string& entry) const {
  return std::find(entries_.begin(), entries_.end(), entry) != entries_.end();
}

void tracked_arrays::attach(const std::string& entry, const checkpoint_array* first,
                            const checkpoint_array* last, bool needed) {
  if (!tracks(entry)) return;
  for (const checkpoint_array* array = first; array != last; ++array) {
    if (array->accesses == nullptr || find(entry, *array) != nullptr) continue;
    std::erase_if(arrays_,
                  [&](const kept& old) { return old.entry == entry && old.array == array->schema.name; });
    try {
      const auto rows = memory_of_rows(*array);
      kept tracked{
          entry, array->schema.name, array->accesses,
          std::make_shared<changed_rows>(rows, device_marks_for<Kokkos::DefaultExecutionSpace>(rows.rows))};
      array->accesses->keep_changes_in(tracked.marks);  // first: an array in the list is one that verbs mark
      // Graphs from before do not mark.
      if (array->accesses->has_captured_writes()) tracked.marks->distrust();
      arrays_.push_back(std::move(tracked));
    } catch (const std::bad_alloc&) {
      if (needed) throw;
      continue;
    } catch (const error&) {
      if (needed) throw;
      continue;
    }
  }
}

void tracked_arrays::take(const std::string& entry, checkpoint_array& array) {
  kept* const tracked = tracks(entry) ? find(entry, array) : nullptr;
  if (tracked == nullptr) return;
  const auto& changed = tracked->marks->take();
  tracked->in_save = true;
  if (tracked->known && tracked->marks->is_trusted()) array.changed = &changed;
}

const manifest* tracked_arrays::base() const { return base_ ? &*base_ : nullptr; }

void tracked_arrays::begin() {
  for (auto& array : arrays_) array.in_save = false;
}

void tracked_arrays::is_in(manifest&& now) {
  if (entries_.empty()) return;
  for (auto& array : arrays_) {
    array.known = array.in_save;
    if (array.in_save) array.marks->drop();
  }
  base_ = std::move(now);
}

void tracked_arrays::forget() { base_.reset(); }

void tracked_arrays::mark(const std::string& entry, const std::vector<std::int64_t>& rows) {
  for (const auto& array : arrays_)
    if (array.entry == entry)
      for (const std::int64_t row : rows)
        if (row < 0 || row >= array.marks->array().rows)
          throw out_of_range("ferry::io::checkpoint::mark_changed: '" + entry + "' has " +
                             std::to_string(array.marks->array().rows) + " rows, and no row " +
                             std::to_string(row));
  for (const auto& array : arrays_)
    if (array.entry == entry)
      for (const std::int64_t row : rows) array.marks->mark(row, row + 1);
}

void tracked_arrays::mark_all(const std::string& entry) {
  for (const auto& array : arrays_)
    if (array.entry == entry) array.marks->mark(0, array.marks->array().rows);
}

tracked_arrays::kept* tracked_arrays::find(const std::string& entry, const checkpoint_array& array) {
  const auto rows = memory_of_rows(array);
  for (auto& candidate : arrays_) {
    const auto& has = candidate.marks->array();
    if (candidate.entry == entry && candidate.array == array.schema.name &&
        candidate.accesses.lock() == array.accesses && has.data == rows.data && has.rows == rows.rows &&
        has.row_bytes == rows.row_bytes && has.stride == rows.stride)
      return &candidate;
  }
  return nullptr;
}

}  // namespace ferry::detail
