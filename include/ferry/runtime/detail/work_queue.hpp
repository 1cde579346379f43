// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

/// How the workers of a worker team share a list of items. take(first, count) returns the next piece, or
/// false for none. Thread-safe.
namespace ferry::detail {

/// Takes pieces from the front to the back.
class front_queue {
 public:
  front_queue(std::int64_t items, std::int64_t piece) : items_(items), piece_(piece) {}

  bool take(std::int64_t& first, std::int64_t& count) {
    first = next_.fetch_add(piece_, std::memory_order_relaxed);
    if (first >= items_) return false;
    count = std::min(piece_, items_ - first);
    return true;
  }
  /// The next item, of a queue with pieces of one item.
  bool take(std::size_t& item) {
    std::int64_t first = 0, count = 0;
    if (!take(first, count)) return false;
    item = static_cast<std::size_t>(first);
    return true;
  }
  /// Gives no further piece out.
  void stop() { next_.store(items_, std::memory_order_relaxed); }

 private:
  std::int64_t items_;
  std::int64_t piece_;
  std::atomic<std::int64_t> next_{0};
};

/// Takes pieces from the back, until they meet the device's teams, which take items from the front. The words
/// are those of a kernels::split_state. The device only reads the limit, so host threads may claim pieces by
/// compare-and-exchange.
class split_queue {
 public:
  /// `reach`: items that the device's teams process at a time.
  split_queue(std::int64_t* limit, const volatile std::int64_t* progress, int teams, std::int64_t reach,
              std::int64_t piece)
      : limit_(limit), progress_(progress), teams_(teams), reach_(reach), piece_(piece) {}

  bool take(std::int64_t& first, std::int64_t& count) {
    const std::atomic_ref<std::int64_t> limit(*limit_);
    std::int64_t end = limit.load();
    while (true) {
      const std::int64_t begin = std::max<std::int64_t>(0, end - piece_);
      if (end <= 0 || is_reached(begin)) return false;
      if (!limit.compare_exchange_weak(end, begin)) continue;
      first = begin;
      count = end - begin;
      return true;
    }
  }

 private:
  /// True if the device reaches `begin` before a worker that starts now.
  [[nodiscard]] bool is_reached(std::int64_t begin) const {
    std::int64_t front = 0;
    for (int team = 0; team < teams_; ++team)
      front = std::max(front, static_cast<std::int64_t>(progress_[team]));
    return front > 0 && begin < front + reach_;
  }

  std::int64_t* limit_;
  const volatile std::int64_t* progress_;
  int teams_;
  std::int64_t reach_;
  std::int64_t piece_;
};

}  // namespace ferry::detail
