// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

/// The oracle of cache::lru.
namespace ferry_test {

/// Groups of slots, each in the order of its use, and the rows in the slots.
class lru_model {
 public:
  lru_model(std::int64_t groups, std::int64_t slots, std::int64_t group_rows)
      : slots_(slots),
        group_rows_(group_rows),
        order_(static_cast<std::size_t>(groups)),
        row_of_(static_cast<std::size_t>(groups * slots), -1),
        slot_of_(static_cast<std::size_t>(groups * group_rows), -1),
        latest_(slot_of_.size(), 0) {
    for (std::int64_t g = 0; g < groups; ++g) forget(g);
  }

  void forget(std::int64_t group) {
    auto& order = order_[static_cast<std::size_t>(group)];
    order.clear();
    for (std::int64_t slot = group * slots_; slot < (group + 1) * slots_; ++slot) {
      order.push_back(slot);
      give(slot, -1);
    }
  }

  struct outcome {
    std::vector<std::int64_t> slots;
    std::int64_t overflows = 0, bad = 0;
    std::uint64_t hits = 0, misses = 0;
  };
  /// `by_lines`: each group has a line of its own.
  outcome resolve(const std::vector<std::int64_t>& rows, bool by_lines, bool spills) {
    outcome result{std::vector<std::int64_t>(rows.size(), -1)};
    const auto all_rows = static_cast<std::int64_t>(slot_of_.size());
    const std::size_t line = rows.size() / (by_lines ? order_.size() : 1);
    std::vector<bool> is_valid(order_.size(), true);
    for (std::size_t p = 0; p < rows.size(); ++p) {
      const bool outside = rows[p] < -1 || rows[p] >= all_rows;
      if (outside || (by_lines && rows[p] >= 0 && group_of(rows[p]) != p / line)) {
        ++result.bad;
        result.slots[p] = -2;
        if (by_lines)
          is_valid[p / line] = false;
        else
          is_valid.assign(order_.size(), false);
      }
    }
    for (std::size_t g = 0; g < order_.size(); ++g) {
      std::vector<std::int64_t> list;
      for (std::size_t p = by_lines ? g * line : 0; p < (by_lines ? (g + 1) * line : rows.size()); ++p)
        if (rows[p] >= 0 && result.slots[p] != -2 && group_of(rows[p]) == g) list.push_back(rows[p]);
      if (is_valid[g]) use(g, list, spills, result);
    }
    for (std::size_t p = 0; p < rows.size(); ++p)
      if (rows[p] >= 0 && result.slots[p] != -2) {
        const std::int64_t slot = slot_of_[static_cast<std::size_t>(rows[p])];
        result.slots[p] = slot < 0 ? -2 : slot;
      }
    return result;
  }

  /// The row of each slot, -1 for none.
  [[nodiscard]] const std::vector<std::int64_t>& rows() const { return row_of_; }

 private:
  [[nodiscard]] std::size_t group_of(std::int64_t row) const {
    return static_cast<std::size_t>(row / group_rows_);
  }
  void give(std::int64_t slot, std::int64_t row) {
    std::int64_t& entry = row_of_[static_cast<std::size_t>(slot)];
    if (entry >= 0) slot_of_[static_cast<std::size_t>(entry)] = -1;
    entry = row;
    if (row >= 0) slot_of_[static_cast<std::size_t>(row)] = slot;
  }

  void use(std::size_t group, const std::vector<std::int64_t>& list, bool spills, outcome& result) {
    ++batch_;
    auto& order = order_[group];
    std::vector<std::int64_t> different;
    std::size_t new_rows = 0;
    std::uint64_t hits = 0;
    for (const std::int64_t row : list) {
      const auto r = static_cast<std::size_t>(row);
      hits += slot_of_[r] < 0 ? 0 : 1;
      if (std::exchange(latest_[r], batch_) == batch_) continue;
      different.push_back(row);
      new_rows += slot_of_[r] < 0 ? 1 : 0;
    }
    std::vector<std::int64_t> unused, used_slots;
    for (const std::int64_t slot : order) {
      const std::int64_t row = row_of_[static_cast<std::size_t>(slot)];
      if (row < 0 || latest_[static_cast<std::size_t>(row)] != batch_) unused.push_back(slot);
    }
    if (new_rows > unused.size() && !spills) {
      ++result.overflows;
      return;
    }
    result.hits += hits;
    result.misses += list.size() - hits;
    std::size_t next = 0;
    for (const std::int64_t row : different) {
      if (slot_of_[static_cast<std::size_t>(row)] < 0) {
        if (next == unused.size()) continue;
        give(unused[next++], row);
      }
      used_slots.push_back(slot_of_[static_cast<std::size_t>(row)]);
    }
    order.assign(unused.begin() + static_cast<std::ptrdiff_t>(next), unused.end());
    order.insert(order.end(), used_slots.begin(), used_slots.end());
  }

  std::int64_t slots_, group_rows_;
  std::vector<std::vector<std::int64_t>> order_;  ///< of each group, the slot used least recently first
  std::vector<std::int64_t> row_of_, slot_of_;
  std::vector<std::uint64_t> latest_;  ///< of each row, the latest batch of its group that names it
  std::uint64_t batch_ = 0;
};

}  // namespace ferry_test
