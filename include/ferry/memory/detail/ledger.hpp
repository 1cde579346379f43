// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/idle_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
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

/// The accounts of one memory space: allocated bytes by label, the budget, and the pools with idle blocks. An
/// allocation is claimed before it is made, so that all threads together stay inside of the budget. It is
/// confirmed afterwards, so that a failure does not raise the peak. Thread-safe. Never allocates or frees a
/// block while it holds its lock.
class ledger {
 public:
  using account = std::pair<const std::string, memory_counts>;

  /// Most labels without live allocations that are kept for their peaks.
  static constexpr std::size_t idle_labels = 256;

  explicit ledger(std::string_view space) : space_(space) {}

  /// Claims bytes. Above the budget, frees idle blocks first; throws budget_exceeded where that is not
  /// enough.
  account& claim(const std::string& label, std::size_t bytes);
  void confirm(account& of, std::size_t bytes) noexcept;
  void cancel(account& of, std::size_t bytes) noexcept;
  void close(account& of, std::size_t bytes) noexcept;

  void add_pool(std::weak_ptr<idle_memory> pool);
  [[nodiscard]] std::size_t idle_bytes() const;
  std::size_t trim(std::size_t enough, in_flight effort);
  /// Frees idle blocks. Waits for blocks in flight only where there are no others. Returns whether any were
  /// freed.
  bool make_room(std::size_t bytes);

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

  /// Drops an account without allocations, or keeps it for its peak.
  void rest(account& of) noexcept;
  void forget_idle() noexcept;

  const std::string space_;
  mutable std::mutex guard_;
  memory_counts all_;
  std::size_t claimed_ = 0;
  std::size_t budget_ = 0;
  std::map<std::string, memory_counts> accounts_;
  std::size_t idle_accounts_ = 0;
  std::vector<std::weak_ptr<idle_memory>> pools_;
};

#ifdef FERRY_RUNTIME_BODIES

FERRY_INLINE ledger::account& ledger::claim(const std::string& label, std::size_t bytes) {
  for (;;) {
    std::size_t missing = 0;
    {
      const std::lock_guard lock(guard_);
      const std::size_t used = all_.current + claimed_;
      if (budget_ == 0 || (used <= budget_ && bytes <= budget_ - used)) {
        account& of = *accounts_.try_emplace(label).first;
        if (of.second.is_idle() && of.second.total_count != 0) --idle_accounts_;
        ++of.second.claims;
        claimed_ += bytes;
        return of;
      }
      if (bytes <= budget_) missing = bytes + used - budget_;
    }
    if (missing == 0 || !make_room(missing)) refuse(label, bytes);
  }
}

FERRY_INLINE void ledger::confirm(account& of, std::size_t bytes) noexcept {
  const std::lock_guard lock(guard_);
  claimed_ -= bytes;
  --of.second.claims;
  of.second.add(bytes);
  all_.add(bytes);
}

FERRY_INLINE void ledger::cancel(account& of, std::size_t bytes) noexcept {
  const std::lock_guard lock(guard_);
  claimed_ -= bytes;
  --of.second.claims;
  rest(of);
}

FERRY_INLINE void ledger::close(account& of, std::size_t bytes) noexcept {
  const std::lock_guard lock(guard_);
  of.second.remove(bytes);
  all_.remove(bytes);
  rest(of);
}

FERRY_INLINE void ledger::add_pool(std::weak_ptr<idle_memory> pool) {
  const std::lock_guard lock(guard_);
  std::erase_if(pools_, [](const auto& gone) { return gone.expired(); });
  pools_.push_back(std::move(pool));
}

FERRY_INLINE std::size_t ledger::idle_bytes() const {
  std::size_t sum = 0;
  for (const auto& pool : pools()) sum += pool->idle_bytes();
  return sum;
}

FERRY_INLINE std::size_t ledger::trim(std::size_t enough, in_flight effort) {
  std::size_t freed = 0;
  for (const auto& pool : pools())
    if (freed < enough) freed += pool->trim(enough - freed, effort);
  return freed;
}

FERRY_INLINE bool ledger::make_room(std::size_t bytes) {
  return trim(bytes, in_flight::skip) != 0 || trim(bytes, in_flight::wait) != 0;
}

FERRY_INLINE void ledger::set_budget(std::size_t bytes) {
  const std::lock_guard lock(guard_);
  budget_ = bytes;
}

FERRY_INLINE std::size_t ledger::budget() const {
  const std::lock_guard lock(guard_);
  return budget_;
}

FERRY_INLINE memory_counts ledger::counts() const {
  const std::lock_guard lock(guard_);
  return all_;
}

FERRY_INLINE std::vector<ledger::account> ledger::accounts() const {
  const std::lock_guard lock(guard_);
  return {accounts_.begin(), accounts_.end()};
}

FERRY_INLINE void ledger::reset_peak() {
  const std::lock_guard lock(guard_);
  forget_idle();
  all_.peak = all_.current;
  for (auto& [label, counts] : accounts_) counts.peak = counts.current;
}

FERRY_INLINE std::string ledger::holdings() const {
  return std::to_string(counts().current) + " bytes of " + space_ + " are held, " +
         std::to_string(idle_bytes()) + " of them idle in pools";
}

FERRY_INLINE void ledger::refuse(const std::string& label, std::size_t bytes) const {
  throw budget_exceeded("ferry: " + std::to_string(bytes) + " bytes in " + space_ + " for '" + label +
                        "' would pass the budget of " + std::to_string(budget()) + " bytes: " + holdings());
}

FERRY_INLINE std::vector<std::shared_ptr<idle_memory>> ledger::pools() const {
  std::vector<std::shared_ptr<idle_memory>> alive;
  const std::lock_guard lock(guard_);
  for (const auto& pool : pools_)
    if (auto found = pool.lock()) alive.push_back(std::move(found));
  return alive;
}

FERRY_INLINE void ledger::rest(account& of) noexcept {
  if (!of.second.is_idle()) return;
  if (of.second.total_count == 0)
    accounts_.erase(accounts_.find(of.first));  // a claim without an allocation
  else if (++idle_accounts_ > idle_labels)
    forget_idle();
}

FERRY_INLINE void ledger::forget_idle() noexcept {
  std::erase_if(accounts_, [](const auto& of) { return of.second.is_idle(); });
  idle_accounts_ = 0;
}

#endif

}  // namespace ferry::detail
