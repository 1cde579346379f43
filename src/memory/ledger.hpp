// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/idle_memory.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::detail {

/// Bytes and allocations of a space, or of one label in it.
struct memory_counts {
  std::size_t current = 0;
  std::size_t peak = 0;
  std::size_t count = 0;
  std::size_t total_count = 0;
  /// Allocations in progress; they keep the account of the label.
  std::size_t claims = 0;

  void add(std::size_t bytes) noexcept {
    current += bytes;
    peak = std::max(peak, current);
    ++count;
    ++total_count;
  }
  void remove(std::size_t bytes) noexcept {
    current -= bytes;
    --count;
  }
  [[nodiscard]] bool is_idle() const noexcept { return count == 0 && claims == 0; }
};

/// The bytes and allocations of a label.
struct memory_account {
  std::string label;
  memory_counts counts;
};

/// The accounts of one memory space: allocated bytes by label, the budget, and the pools with idle blocks. An
/// allocation is claimed before it is made, so that all threads together stay inside of the budget. It is
/// confirmed afterwards, so that a failure does not raise the peak. Thread-safe. Never allocates or frees a
/// block while it holds its lock.
class ledger {
 public:
  using account = memory_account;

  /// Most labels without live allocations that are kept for their peaks.
  static constexpr std::size_t idle_labels = 256;

  explicit ledger(std::string_view space) : space_(space) {}
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;
  ~ledger() = default;

  [[nodiscard]] std::string_view space() const noexcept { return space_; }

  /// Claims bytes. Above the budget, frees idle blocks first; throws budget_exceeded if that is not
  /// enough.
  account& claim(const std::string& label, std::size_t bytes);
  void confirm(account& entry, std::size_t bytes) noexcept;
  void cancel(account& entry, std::size_t bytes) noexcept;
  void close(account& entry, std::size_t bytes) noexcept;
  /// Moves an allocation to the account of another label.
  account& move(account& entry, const std::string& label, std::size_t bytes);

  void add_pool(std::weak_ptr<idle_memory> pool);
  [[nodiscard]] std::size_t idle_bytes() const;
  std::size_t trim(std::size_t enough, in_flight effort);
  /// Frees idle blocks. Waits for blocks in flight only if there are no others. Returns whether any were
  /// freed.
  /// Another thread may be freeing the last of them: waits for it, and returns true if any were freed since
  /// freed_bytes() was `freed_before`, when memory was short.
  bool make_room(std::size_t bytes, std::size_t freed_before);
  /// Bytes of idle blocks that were freed so far.
  [[nodiscard]] std::size_t freed_bytes() const;
  /// True if the space holds no more than its budget.
  [[nodiscard]] bool is_within_budget() const;

  void set_budget(std::size_t bytes);
  [[nodiscard]] std::size_t budget() const;
  [[nodiscard]] memory_counts counts() const;
  [[nodiscard]] std::vector<account> accounts() const;
  void reset_peak();

  /// The bytes held, for error messages.
  [[nodiscard]] std::string holdings() const;

 private:
  [[noreturn]] void refuse(const std::string& label, std::size_t bytes) const;

  [[nodiscard]] std::vector<std::shared_ptr<idle_memory>> pools() const;

  /// Adds an account if the label has none.
  account& account_of_label(const std::string& label);
  /// Drops an account without allocations, or keeps it for its peak.
  void rest(account& entry) noexcept;
  void forget_idle() noexcept;

  const std::string space_;
  mutable std::mutex guard_;
  memory_counts totals_;
  std::size_t claimed_ = 0;
  std::size_t freed_bytes_ = 0;
  std::size_t trims_ = 0;  ///< under way
  std::condition_variable trim_end_;
  std::size_t budget_ = 0;
  std::map<std::string, account> accounts_;  // by label; their addresses stay
  std::size_t idle_accounts_ = 0;
  std::vector<std::weak_ptr<idle_memory>> pools_;
};

/// The accounts of all memory spaces. Every live allocation shares it, so one that outlives Kokkos::finalize
/// still closes its own account.
class memory_registry {
 public:
  memory_registry() = default;
  memory_registry(const memory_registry&) = delete;
  memory_registry& operator=(const memory_registry&) = delete;
  ~memory_registry() = default;
  static std::shared_ptr<memory_registry> get();

  ledger& ledger_of(std::string_view space);
  /// The accounts of all spaces by name. They live as long as the registry.
  [[nodiscard]] std::vector<ledger*> spaces();

  /// Frees idle blocks of all spaces, or of one on all devices.
  std::size_t trim(in_flight effort, std::string_view space = {});

 private:
  std::mutex guard_;
  std::map<std::string, ledger, std::less<>> ledgers_;  // by name
};

}  // namespace ferry::detail
