#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

/// How the workers of a crew share a list of items: take(most, first, count) hands out the next piece, of at most
/// so many items, or says that there is none. Thread-safe.
namespace ferry::detail {

/// How large the pieces of a list are. They shrink towards its end, where the last piece of one worker is what all
/// others wait for (guided self-scheduling, Polychronopoulos and Kuck 1987).
struct piece_sizes {
  std::int64_t most = 1;
  std::int64_t least = 1;
  int workers = 1;

  /// Of the next piece, while so many items are left to all.
  [[nodiscard]] std::int64_t of(std::int64_t left, std::int64_t wanted) const {
    if (workers == 1) return std::min(wanted, most);
    return std::min({std::max(least, left / (std::int64_t{shares} * workers)), wanted, most});
  }

  static constexpr int shares = 2;  ///< of what is left, for each worker
};

/// From the front to the back.
class front_claims {
 public:
  front_claims(std::int64_t items, const piece_sizes& pieces) : items_(items), pieces_(pieces) {}

  bool take(std::int64_t most, std::int64_t& first, std::int64_t& count) {
    first = next_.load(std::memory_order_relaxed);
    do {
      if (first >= items_) return false;
      count = std::min(pieces_.of(items_ - first, most), items_ - first);
    } while (!next_.compare_exchange_weak(first, first + count, std::memory_order_relaxed));
    return true;
  }

 private:
  std::int64_t items_;
  piece_sizes pieces_;
  std::atomic<std::int64_t> next_{0};
};

/// From the back, until the device's teams, which walk from the front, are met. The words are those of a
/// kernels::meeting_point; the device only reads the limit, so claiming by compare-and-exchange is the host's own
/// affair.
class meeting_claims {
 public:
  /// `reach`: items that the device's teams hold at a time.
  meeting_claims(std::int64_t* limit, const volatile std::int64_t* progress, int teams, std::int64_t reach,
                 const piece_sizes& pieces)
      : limit_(limit), progress_(progress), teams_(teams), reach_(reach), pieces_(pieces) {}

  bool take(std::int64_t most, std::int64_t& first, std::int64_t& count) {
    const std::atomic_ref<std::int64_t> limit(*limit_);
    std::int64_t end = limit.load();
    while (true) {
      const std::int64_t front = front_of_device();
      const std::int64_t begin = std::max<std::int64_t>(0, end - pieces_.of(end - front, most));
      // Where the device will be there sooner than a worker who begins now, the rest is the device's.
      if (end <= 0 || (front > 0 && begin < front + reach_)) return false;
      if (!limit.compare_exchange_weak(end, begin)) continue;
      first = begin;
      count = end - begin;
      return true;
    }
  }

  /// The items from here on were claimed.
  [[nodiscard]] std::int64_t begin() const { return std::atomic_ref<std::int64_t>(*limit_).load(); }

 private:
  [[nodiscard]] std::int64_t front_of_device() const {
    std::int64_t front = 0;
    for (int team = 0; team < teams_; ++team)
      front = std::max(front, static_cast<std::int64_t>(progress_[team]));
    return front;
  }

  std::int64_t* limit_;
  const volatile std::int64_t* progress_;
  int teams_;
  std::int64_t reach_;
  piece_sizes pieces_;
};

}  // namespace ferry::detail
