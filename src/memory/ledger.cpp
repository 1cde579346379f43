// SPDX-License-Identifier: Apache-2.0
#include "ledger.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/detail/device_account.hpp>
#include <ferry/memory/detail/memory_charge.hpp>
#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/detail/require_kokkos.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

ledger::account& ledger::account_of_label(const std::string& label) {
  const auto known = accounts_.find(label);
  return known != accounts_.end() ? known->second
                                  : accounts_.emplace(label, account{label, {}}).first->second;
}

ledger::account& ledger::claim(const std::string& label, std::size_t bytes) {
  for (;;) {
    std::size_t missing = 0, freed_before = 0;
    {
      const std::lock_guard lock(guard_);
      const std::size_t taken_bytes = totals_.current + claimed_;
      if (budget_ == 0 || (taken_bytes <= budget_ && bytes <= budget_ - taken_bytes)) {
        account& entry = account_of_label(label);
        if (entry.counts.is_idle() && entry.counts.total_count != 0) --idle_accounts_;
        ++entry.counts.claims;
        claimed_ += bytes;
        return entry;
      }
      freed_before = freed_bytes_;
      if (bytes <= budget_) missing = bytes + taken_bytes - budget_;
    }
    if (missing == 0 || !make_room(missing, freed_before)) refuse(label, bytes);
  }
}

void ledger::confirm(account& entry, std::size_t bytes) noexcept {
  const std::lock_guard lock(guard_);
  claimed_ -= bytes;
  --entry.counts.claims;
  entry.counts.add(bytes);
  totals_.add(bytes);
}

void ledger::cancel(account& entry, std::size_t bytes) noexcept {
  const std::lock_guard lock(guard_);
  claimed_ -= bytes;
  --entry.counts.claims;
  rest(entry);
}

void ledger::close(account& entry, std::size_t bytes) noexcept {
  const std::lock_guard lock(guard_);
  entry.counts.remove(bytes);
  totals_.remove(bytes);
  rest(entry);
}

ledger::account& ledger::move(account& entry, const std::string& label, std::size_t bytes) {
  const std::lock_guard lock(guard_);
  account& target = account_of_label(label);
  if (&target == &entry) return entry;
  if (target.counts.is_idle() && target.counts.total_count != 0) --idle_accounts_;
  target.counts.add(bytes);
  entry.counts.remove(bytes);
  rest(entry);
  return target;
}

void ledger::add_pool(std::weak_ptr<idle_memory> pool) {
  const std::lock_guard lock(guard_);
  std::erase_if(pools_, [](const auto& gone) { return gone.expired(); });
  pools_.push_back(std::move(pool));
}

std::size_t ledger::idle_bytes() const {
  std::size_t sum = 0;
  for (const auto& pool : pools()) sum += pool->idle_bytes();
  return sum;
}

std::size_t ledger::trim(std::size_t enough, in_flight effort) {
  const auto alive = pools();
  {
    const std::lock_guard lock(guard_);
    ++trims_;
  }
  struct trim_under_way {
    ledger& books;
    std::size_t freed = 0;
    ~trim_under_way() {
      const std::lock_guard lock(books.guard_);
      --books.trims_;
      books.freed_bytes_ += freed;
      books.trim_end_.notify_all();
    }
  } under_way{*this};
  for (const auto& pool : alive)
    if (under_way.freed < enough) under_way.freed += pool->trim(enough - under_way.freed, effort);
  return under_way.freed;
}

bool ledger::make_room(std::size_t bytes, std::size_t freed_before) {
  if (trim(bytes, in_flight::skip) != 0 || trim(bytes, in_flight::wait) != 0) return true;
  std::unique_lock lock(guard_);
  trim_end_.wait(lock, [&] { return freed_bytes_ != freed_before || trims_ == 0; });
  return freed_bytes_ != freed_before;
}

std::size_t ledger::freed_bytes() const {
  const std::lock_guard lock(guard_);
  return freed_bytes_;
}

bool ledger::is_within_budget() const {
  const std::lock_guard lock(guard_);
  return budget_ == 0 || totals_.current + claimed_ <= budget_;
}

void ledger::set_budget(std::size_t bytes) {
  const std::lock_guard lock(guard_);
  budget_ = bytes;
}

std::size_t ledger::budget() const {
  const std::lock_guard lock(guard_);
  return budget_;
}

memory_counts ledger::counts() const {
  const std::lock_guard lock(guard_);
  return totals_;
}

std::vector<ledger::account> ledger::accounts() const {
  std::vector<account> list;
  const std::lock_guard lock(guard_);
  list.reserve(accounts_.size());
  for (const auto& entry : accounts_) list.push_back(entry.second);
  return list;
}

void ledger::reset_peak() {
  const std::lock_guard lock(guard_);
  forget_idle();
  totals_.peak = totals_.current;
  for (auto& entry : accounts_) entry.second.counts.peak = entry.second.counts.current;
}

std::string ledger::holdings() const {
  return joined(counts().current, " bytes of ", space_, " are held, ", idle_bytes(),
                " of them idle in pools");
}

void ledger::refuse(const std::string& label, std::size_t bytes) const {
  throw budget_exceeded(joined("ferry: ", bytes, " bytes in ", space_, " for '", label,
                               "' would pass the budget of ", budget(), " bytes: ", holdings()));
}

std::vector<std::shared_ptr<idle_memory>> ledger::pools() const {
  std::vector<std::shared_ptr<idle_memory>> alive;
  const std::lock_guard lock(guard_);
  for (const auto& pool : pools_)
    if (auto alive_pool = pool.lock()) alive.push_back(std::move(alive_pool));
  return alive;
}

void ledger::rest(account& entry) noexcept {
  if (!entry.counts.is_idle()) return;
  if (entry.counts.total_count == 0) {  // a claim without an allocation
    accounts_.erase(accounts_.find(entry.label));
  } else if (++idle_accounts_ > idle_labels) {
    forget_idle();
  }
}

void ledger::forget_idle() noexcept {
  std::erase_if(accounts_, [](const auto& entry) { return entry.second.counts.is_idle(); });
  idle_accounts_ = 0;
}

std::shared_ptr<memory_registry> memory_registry::get() { return until_finalize<memory_registry>(); }

ledger& memory_registry::ledger_of(std::string_view space) {
  const std::lock_guard lock(guard_);
  const auto known = ledgers_.find(space);
  return known != ledgers_.end() ? known->second
                                 : ledgers_.try_emplace(std::string(space), space).first->second;
}

std::vector<ledger*> memory_registry::spaces() {
  const std::lock_guard lock(guard_);
  std::vector<ledger*> ledgers;
  for (auto& entry : ledgers_) ledgers.push_back(&entry.second);
  return ledgers;
}

std::size_t memory_registry::trim(in_flight effort, std::string_view space) {
  if (process_identity::get().has_lost_kokkos()) return 0;  // the blocks are the parent's
  const std::string on_devices = std::string(space).append(" of device ");
  std::size_t freed = 0;
  for (ledger* books : spaces())
    if (space.empty() || books->space() == space || books->space().starts_with(on_devices))
      freed += books->trim(~std::size_t{0}, effort);
  return freed;
}

memory_charge::memory_charge(std::string_view space, const std::string& label, std::size_t bytes) {
  auto registry = memory_registry::get();
  ledger& books = registry->ledger_of(space);
  memory_account& account = books.claim(require_kokkos(label), bytes);
  account_ = {&account, charge_end{std::move(registry), &books, bytes, false}};
}

void memory_charge::confirm() noexcept {
  charge_end& entry = account_.get_deleter();
  entry.books->confirm(*account_, entry.bytes);
  entry.confirmed = true;
}

void memory_charge::move_to(const std::string& label) {
  charge_end entry = account_.get_deleter();
  memory_account& account = entry.books->move(*account_, label, entry.bytes);
  static_cast<void>(account_.release());
  account_ = {&account, std::move(entry)};
}

bool memory_charge::make_room(std::size_t freed_before) {
  return account_.get_deleter().books->make_room(~std::size_t{0}, freed_before);
}

std::size_t memory_charge::freed_bytes() const { return account_.get_deleter().books->freed_bytes(); }

std::string memory_charge::holdings() const { return account_.get_deleter().books->holdings(); }

void charge_end::operator()(memory_account* account) const noexcept {
  confirmed ? books->close(*account, bytes) : books->cancel(*account, bytes);
}

void refuse_device(const std::string& label, int device, int count) {
  throw invalid_argument(joined("ferry: memory for '", label, "' was requested on device ", device, ", but ",
                                count == 1 ? "the only device is " : "the devices are 0 to ", count - 1));
}

}  // namespace ferry::detail
