// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Prints an error that can't be thrown.
[[gnu::cold]] void print_unheard(const std::exception_ptr& lost) noexcept;

/// The findings of detached work that has ended, until a wait on the same instance throws them: each once,
/// the oldest first. Those that nobody throws are printed. Thread-safe.
class unheard_findings {
 public:
  unheard_findings() = default;
  unheard_findings(const unheard_findings&) = delete;
  unheard_findings& operator=(const unheard_findings&) = delete;
  ~unheard_findings() {
    for (const entry& finding : list_) print_unheard(finding.error);
  }

  /// Prints the finding at once if the list is full: in a loop that never waits it would grow for ever.
  [[gnu::cold]] void add(instance_id who, const std::exception_ptr& error) noexcept;
  /// The oldest finding of an instance, null for none.
  [[nodiscard]] std::exception_ptr take(instance_id who) noexcept {
    return filled_.load(std::memory_order_acquire) ? take_one(who) : nullptr;
  }

 private:
  static constexpr std::size_t most = 64;
  struct entry {
    instance_id who;
    std::exception_ptr error;
  };

  [[gnu::cold]] std::exception_ptr take_one(instance_id who) noexcept;

  std::mutex guard_;
  std::vector<entry> list_;
  std::atomic<bool> filled_{false};  ///< true if the list has any, read without the lock
};

}  // namespace ferry::detail
