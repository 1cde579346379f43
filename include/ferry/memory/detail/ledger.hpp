// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/dynamic_array.hpp>
#include <ferry/memory/detail/idle_memory.hpp>
#include <ferry/memory/detail/joined.hpp>
#include <ferry/memory/detail/owned.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

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
  struct account {
    std::string label;
    memory_counts counts;
  };

  /// Most labels without live allocations that are kept for their peaks.
  static constexpr std::size_t idle_labels = 256;

  explicit ledger(std::string_view space) : space_(space) {}
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;
  ~ledger();

  [[nodiscard]] std::string_view space() const noexcept { return space_; }

  /// Claims bytes. Above the budget, frees idle blocks first; throws budget_exceeded where that is not
  /// enough.
  FERRY_LAZY [[gnu::cold]] account& claim(const std::string& label, std::size_t bytes);
  FERRY_LAZY [[gnu::cold]] void confirm(account& of, std::size_t bytes) noexcept;
  FERRY_LAZY [[gnu::cold]] void cancel(account& of, std::size_t bytes) noexcept;
  FERRY_LAZY [[gnu::cold]] void close(account& of, std::size_t bytes) noexcept;

  FERRY_LAZY [[gnu::cold]] void add_pool(std::weak_ptr<idle_memory> pool);
  FERRY_LAZY [[gnu::cold]] [[nodiscard]] std::size_t idle_bytes() const;
  FERRY_LAZY [[gnu::cold]] std::size_t trim(std::size_t enough, in_flight effort);
  /// Frees idle blocks. Waits for blocks in flight only where there are no others. Returns whether any were
  /// freed.
  FERRY_LAZY [[gnu::cold]] bool make_room(std::size_t bytes);

  FERRY_LAZY [[gnu::cold]] void set_budget(std::size_t bytes);
  FERRY_LAZY [[gnu::cold]] [[nodiscard]] std::size_t budget() const;
  FERRY_LAZY [[gnu::cold]] [[nodiscard]] memory_counts counts() const;
  FERRY_LAZY [[gnu::cold]] [[nodiscard]] dynamic_array<account> accounts() const;
  FERRY_LAZY [[gnu::cold]] void reset_peak();

  /// The bytes held, for error messages.
  FERRY_LAZY [[gnu::cold]] [[nodiscard]] std::string holdings() const;

 private:
  FERRY_LAZY [[noreturn]] void refuse(const std::string& label, std::size_t bytes) const;

  FERRY_LAZY [[gnu::cold]] [[nodiscard]] dynamic_array<std::shared_ptr<idle_memory>> pools() const;

  /// Adds an account where the label has none.
  FERRY_LAZY [[gnu::cold]] account& account_of_label(const std::string& label);
  /// Drops an account without allocations, or keeps it for its peak.
  FERRY_LAZY [[gnu::cold]] void rest(account& of) noexcept;
  FERRY_LAZY [[gnu::cold]] void forget_idle() noexcept;

  const std::string space_;
  mutable std::mutex guard_;
  memory_counts all_;
  std::size_t claimed_ = 0;
  std::size_t budget_ = 0;
  std::map<std::string, void*> accounts_;  // a type that each program has, of accounts by label
  std::size_t idle_accounts_ = 0;
  dynamic_array<std::weak_ptr<idle_memory>> pools_;
};

#ifdef FERRY_RUNTIME_BODIES

FERRY_INLINE ledger::~ledger() {
  for (const auto& each : accounts_) delete static_cast<const account*>(each.second);
}

FERRY_LAZY ledger::account& ledger::account_of_label(const std::string& label) {
  const auto found = accounts_.find(label);
  if (found != accounts_.end()) return *static_cast<account*>(found->second);
  owned<account> made(new account{label, {}});
  accounts_[label] = made.get();
  return *made.release();
}

FERRY_LAZY ledger::account& ledger::claim(const std::string& label, std::size_t bytes) {
  for (;;) {
    std::size_t missing = 0;
    {
      const std::lock_guard lock(guard_);
      const std::size_t used = all_.current + claimed_;
      if (budget_ == 0 || (used <= budget_ && bytes <= budget_ - used)) {
        account& of = account_of_label(label);
        if (of.counts.is_idle() && of.counts.total_count != 0) --idle_accounts_;
        ++of.counts.claims;
        claimed_ += bytes;
        return of;
      }
      if (bytes <= budget_) missing = bytes + used - budget_;
    }
    if (missing == 0 || !make_room(missing)) refuse(label, bytes);
  }
}

FERRY_LAZY void ledger::confirm(account& of, std::size_t bytes) noexcept {
  const std::lock_guard lock(guard_);
  claimed_ -= bytes;
  --of.counts.claims;
  of.counts.add(bytes);
  all_.add(bytes);
}

FERRY_LAZY void ledger::cancel(account& of, std::size_t bytes) noexcept {
  const std::lock_guard lock(guard_);
  claimed_ -= bytes;
  --of.counts.claims;
  rest(of);
}

FERRY_LAZY void ledger::close(account& of, std::size_t bytes) noexcept {
  const std::lock_guard lock(guard_);
  of.counts.remove(bytes);
  all_.remove(bytes);
  rest(of);
}

FERRY_LAZY void ledger::add_pool(std::weak_ptr<idle_memory> pool) {
  const std::lock_guard lock(guard_);
  pools_.erase_if([](const auto& gone) { return gone.expired(); });
  pools_.push_back(std::move(pool));
}

FERRY_LAZY std::size_t ledger::idle_bytes() const {
  std::size_t sum = 0;
  for (const auto& pool : pools()) sum += pool->idle_bytes();
  return sum;
}

FERRY_LAZY std::size_t ledger::trim(std::size_t enough, in_flight effort) {
  std::size_t freed = 0;
  for (const auto& pool : pools())
    if (freed < enough) freed += pool->trim(enough - freed, effort);
  return freed;
}

FERRY_LAZY bool ledger::make_room(std::size_t bytes) {
  return trim(bytes, in_flight::skip) != 0 || trim(bytes, in_flight::wait) != 0;
}

FERRY_LAZY void ledger::set_budget(std::size_t bytes) {
  const std::lock_guard lock(guard_);
  budget_ = bytes;
}

FERRY_LAZY std::size_t ledger::budget() const {
  const std::lock_guard lock(guard_);
  return budget_;
}

FERRY_LAZY memory_counts ledger::counts() const {
  const std::lock_guard lock(guard_);
  return all_;
}

FERRY_LAZY dynamic_array<ledger::account> ledger::accounts() const {
  dynamic_array<account> all;
  const std::lock_guard lock(guard_);
  all.reserve(accounts_.size());
  for (const auto& each : accounts_) all.push_back(*static_cast<const account*>(each.second));
  return all;
}

FERRY_LAZY void ledger::reset_peak() {
  const std::lock_guard lock(guard_);
  forget_idle();
  all_.peak = all_.current;
  for (const auto& each : accounts_) {
    memory_counts& counts = static_cast<account*>(each.second)->counts;
    counts.peak = counts.current;
  }
}

FERRY_LAZY std::string ledger::holdings() const {
  return joined(
      {counts().current, " bytes of ", space_, " are held, ", idle_bytes(), " of them idle in pools"});
}

FERRY_LAZY void ledger::refuse(const std::string& label, std::size_t bytes) const {
  throw budget_exceeded(joined({"ferry: ", bytes, " bytes in ", space_, " for '", label,
                                "' would pass the budget of ", budget(), " bytes: ", holdings()}));
}

FERRY_LAZY dynamic_array<std::shared_ptr<idle_memory>> ledger::pools() const {
  dynamic_array<std::shared_ptr<idle_memory>> alive;
  const std::lock_guard lock(guard_);
  for (const auto& pool : pools_)
    if (auto found = pool.lock()) alive.push_back(std::move(found));
  return alive;
}

FERRY_LAZY void ledger::rest(account& of) noexcept {
  if (!of.counts.is_idle()) return;
  if (of.counts.total_count == 0) {  // a claim without an allocation
    accounts_.erase(accounts_.find(of.label));
    delete &of;
  } else if (++idle_accounts_ > idle_labels) {
    forget_idle();
  }
}

FERRY_LAZY void ledger::forget_idle() noexcept {
  for (auto at = accounts_.begin(); at != accounts_.end();) {
    const account* const of = static_cast<const account*>(at->second);
    if (of->counts.is_idle()) {
      at = accounts_.erase(at);
      delete of;
    } else {
      ++at;
    }
  }
  idle_accounts_ = 0;
}

#endif

}  // namespace ferry::detail
