// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/changed_rows.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ferry::detail {

/// The arrays of a checkpoint whose changed rows verbs keep, and the manifest that the marks refer to. A mark
/// lasts until a save that has taken it succeeds. Not thread-safe: the owner locks.
class tracked_arrays {
 public:
  void track(const std::string& entry);
  [[nodiscard]] bool tracks(const std::string& entry) const;

  /// Before a save reads the arrays of an entry: has verbs keep marks for arrays that have none yet, those
  /// that the entry has got since the last save. Where there is no memory for marks it throws if they are
  /// `needed`; else the array is compared.
  void attach(const std::string& entry, const checkpoint_array* first, const checkpoint_array* last,
              bool needed = false);
  /// Before the rows are read: takes the marks. Where they can be relied on, the array gets them.
  void take(const std::string& entry, checkpoint_array& array);
  /// The manifest that the marks refer to; null: none.
  [[nodiscard]] const manifest* base() const;
  /// A new save or a load begins.
  void begin();
  /// The changes that take() found since begin() are in this checkpoint.
  void is_in(manifest&& now);
  /// The arrays are in no known checkpoint.
  void forget();

  /// Marks rows that were written without a verb. Throws out_of_range, and marks nothing then.
  void mark(const std::string& entry, const std::vector<std::int64_t>& rows);
  void mark_all(const std::string& entry);

 private:
  struct kept {
    std::string entry;
    std::string array;
    std::weak_ptr<access_tracker> accesses;
    std::shared_ptr<changed_rows> marks;
    bool known = false;    ///< whether the marks tell all changes since base_
    bool in_save = false;  ///< whether the present save has taken them
  };

  kept* find(const std::string& entry, const checkpoint_array& array);

  std::vector<std::string> entries_;
  std::vector<kept> arrays_;
  std::optional<manifest> base_;
};

}  // namespace ferry::detail
