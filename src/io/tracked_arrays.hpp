// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/marks_on.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/changed_rows.hpp>
#include <ferry/memory/detail/late.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The arrays of a checkpoint whose changed rows verbs keep, and the manifest that the marks refer to. A mark
/// lasts until a save that has taken it succeeds. Not thread-safe: the owner locks.
template <class Dependent>
class basic_tracked_arrays {
  using manifest = late<detail::manifest, Dependent>;
  using checkpoint_array = late<detail::checkpoint_array, Dependent>;
  using changed_rows = late<detail::changed_rows, Dependent>;
  using access_tracker = late<detail::access_tracker, Dependent>;

 public:
  void track(const std::string& entry, make_device_marks make) {
    make_ = make;
    if (!tracks(entry)) entries_.push_back(entry);
  }
  [[nodiscard]] bool tracks(const std::string& entry) const {
    return std::find(entries_.begin(), entries_.end(), entry) != entries_.end();
  }

  /// Before a save reads the arrays of an entry: has verbs keep marks for arrays that have none yet, those
  /// that the entry has got since the last save. Where there is no memory for marks it throws if they are
  /// `needed`; else the array is compared.
  void attach(const std::string& entry, const checkpoint_array* first, const checkpoint_array* last,
              bool needed = false) {
    if (!tracks(entry)) return;
    for (const checkpoint_array* each = first; each != last; ++each) {
      if (each->accesses == nullptr || find(entry, *each) != nullptr) continue;
      std::erase_if(arrays_,
                    [&](const kept& old) { return old.entry == entry && old.array == each->schema.name; });
      try {
        const auto rows = memory_of_rows(*each);
        kept made{entry, each->schema.name, each->accesses,
                  std::make_shared<changed_rows>(rows, make_(rows.rows))};
        each->accesses->keep_changes_in(made.marks);  // first: an array in the list is one that verbs mark
        // Graphs from before do not mark.
        if (each->accesses->has_captured_writes()) made.marks->distrust();
        arrays_.push_back(std::move(made));
      } catch (const std::bad_alloc&) {
        if (needed) throw;
        continue;
      } catch (const error&) {
        if (needed) throw;
        continue;
      }
    }
  }
  /// Before the rows are read: takes the marks. Where they can be relied on, the array gets them.
  void take(const std::string& entry, checkpoint_array& array) {
    kept* const found = tracks(entry) ? find(entry, array) : nullptr;
    if (found == nullptr) return;
    const auto& taken = found->marks->take();
    found->in_save = true;
    if (found->known && found->marks->is_trusted()) array.changed = &taken;
  }
  /// The manifest that the marks refer to; null: none.
  [[nodiscard]] const manifest* base() const { return base_ ? &*base_ : nullptr; }
  /// A new save or a load begins.
  void begin() {
    for (auto& each : arrays_) each.in_save = false;
  }
  /// What take() found since begin() is in this checkpoint.
  void is_in(manifest&& now) {
    if (entries_.empty()) return;
    for (auto& each : arrays_) {
      each.known = each.in_save;
      if (each.in_save) each.marks->drop();
    }
    base_ = std::move(now);
  }
  /// The arrays are in no known checkpoint.
  void forget() { base_.reset(); }

  /// Marks rows that were written without a verb. Throws out_of_range, and marks nothing then.
  void mark(const std::string& entry, const std::vector<std::int64_t>& rows) {
    for (const auto& each : arrays_)
      if (each.entry == entry)
        for (const std::int64_t row : rows)
          if (row < 0 || row >= each.marks->array().rows)
            throw out_of_range("ferry::io::checkpoint::mark_changed: '" + entry + "' has " +
                               std::to_string(each.marks->array().rows) + " rows, and no row " +
                               std::to_string(row));
    for (const auto& each : arrays_)
      if (each.entry == entry)
        for (const std::int64_t row : rows) each.marks->mark(row, row + 1);
  }
  void mark_all(const std::string& entry) {
    for (const auto& each : arrays_)
      if (each.entry == entry) each.marks->mark(0, each.marks->array().rows);
  }

 private:
  struct kept {
    std::string entry;
    std::string array;
    std::weak_ptr<access_tracker> accesses;
    std::shared_ptr<changed_rows> marks;
    bool known = false;    ///< whether the marks tell all changes since base_
    bool in_save = false;  ///< whether the present save has taken them
  };

  kept* find(const std::string& entry, const checkpoint_array& array) {
    const auto rows = memory_of_rows(array);
    for (auto& each : arrays_) {
      const auto& has = each.marks->array();
      if (each.entry == entry && each.array == array.schema.name && each.accesses.lock() == array.accesses &&
          has.data == rows.data && has.rows == rows.rows && has.row_bytes == rows.row_bytes &&
          has.stride == rows.stride)
        return &each;
    }
    return nullptr;
  }

  std::vector<std::string> entries_;
  std::vector<kept> arrays_;
  std::optional<manifest> base_;
  make_device_marks make_ = nullptr;
};
using tracked_arrays = basic_tracked_arrays<void>;

}  // namespace ferry::detail
