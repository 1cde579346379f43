// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/access_tracker.hpp>

#include <ferry/error.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ferry::detail {

/// A cached_table in front of the tensor.
struct access_tracker::cache_in_front {
  std::string tensor;  ///< its label, in quotes
  row_hold hold = row_hold::none;
  std::thread::id opener{};  ///< of the last open()

  [[nodiscard]] bool is_open_to_caller() const noexcept { return opener == std::this_thread::get_id(); }
};

access_tracker::access_tracker(int device) noexcept : device_(device) {}

access_tracker::~access_tracker() = default;

void access_tracker::add_read(event_handle end, instance_id who) {
  promise(false);
  note(false, std::move(end), who);
}

void access_tracker::add_write(event_handle end, instance_id who) {
  promise(true);
  note(true, std::move(end), who);
}

void access_tracker::promise(bool writes) {
  const std::lock_guard lock(guard_);
  record_of(writes).promise();
}

void access_tracker::note(bool writes, event_handle end, instance_id who) noexcept {
  const std::lock_guard lock(guard_);
  record_of(writes).drop_ended(&who);
  record_of(writes).note(std::move(end), who);
}

void access_tracker::withdraw(bool writes) noexcept {
  const std::lock_guard lock(guard_);
  record_of(writes).withdraw();
}

void access_tracker::before_read(instance_id who, std::vector<event_handle>& events) const {
  const std::lock_guard lock(guard_);
  require_read();
  writes_.visit_others(&who, [&](const event_handle& end) { events.push_back(end); });
}

std::vector<event_handle> access_tracker::before_read(instance_id who) const {
  std::vector<event_handle> events;
  before_read(who, events);
  return events;
}

void access_tracker::before_write(instance_id who, std::vector<event_handle>& events) const {
  const std::lock_guard lock(guard_);
  require_write();
  for (const use_record* record : {&writes_, &reads_})
    record->visit_others(&who, [&](const event_handle& end) { events.push_back(end); });
}

std::vector<event_handle> access_tracker::before_write(instance_id who) const {
  std::vector<event_handle> events;
  before_write(who, events);
  return events;
}

void access_tracker::wait_for_writes() { wait(false); }

void access_tracker::wait_for_all() { wait(true); }

void access_tracker::wait(bool for_reads) {
  std::vector<event_handle> events;
  const auto append = [&](const event_handle& end) { events.push_back(end); };
  {
    const std::lock_guard lock(guard_);
    for_reads ? require_write() : require_read();
    writes_.visit_others(nullptr, append);
    if (for_reads) reads_.visit_others(nullptr, append);
  }
  if (events.empty()) return;
  for (const auto& event : events) event->wait();
  const std::lock_guard lock(guard_);
  writes_.drop(events);
  reads_.drop(events);
}

void access_tracker::append_to(use_record& record) const {
  const std::lock_guard lock(guard_);
  record.append(writes_);
  record.append(reads_);
}

void access_tracker::wait_ignoring_errors() const noexcept {
  const std::lock_guard lock(guard_);
  for (const use_record* record : {&writes_, &reads_})
    record->visit_others(nullptr, [](const event_handle& end) {
      try {
        end->wait();
      } catch (...) {  // failed work has ended, too
      }
    });
}

bool access_tracker::attach_cache(const std::string& label) {
  auto attached = std::make_unique<cache_in_front>(cache_in_front{"'" + label + "'"});
  const std::lock_guard lock(guard_);
  if (cache_ != nullptr) return false;
  cache_ = std::move(attached);
  note_untracked_use();  // of exchanges, which write rows back on an instance of their own
  return true;
}

void access_tracker::hold(row_hold how) noexcept {
  const std::lock_guard lock(guard_);
  if (cache_ == nullptr) return;
  cache_->hold = how;
  cache_->opener = {};
}

void access_tracker::open() noexcept {
  const std::lock_guard lock(guard_);
  if (cache_ != nullptr) cache_->opener = std::this_thread::get_id();
}

void access_tracker::detach_cache() noexcept {
  const std::lock_guard lock(guard_);
  cache_ = nullptr;
}

void access_tracker::require_read() const {
  if (cache_ == nullptr || cache_->hold != row_hold::closed || cache_->is_open_to_caller()) return;
  throw invalid_argument("ferry: a cached_table has newer rows of " + cache_->tensor +
                         " in device memory; use the cached_table, or call its flush() first");
}

void access_tracker::require_write() const {
  if (cache_ == nullptr || cache_->hold == row_hold::none || cache_->is_open_to_caller()) return;
  throw invalid_argument("ferry: a cached_table has rows of " + cache_->tensor +
                         " in device memory and would not see this write; write through the cached_table, "
                         "or destroy it first");
}

void use_record::promise() {
  uses_.reserve(uses_.size() + promised_ + 1);
  ++promised_;
}

void use_record::note(event_handle end, instance_id who) noexcept {
  --promised_;
  const bool after_loan = lent_to_instance_ && borrower_ == who;
  std::erase_if(uses_,
                [&](const use_point& use) { return use.who == who || (after_loan && use.before_loan); });
  if (end != nullptr) uses_.push_back({std::move(end), who, false});
}

void use_record::add(event_handle end, instance_id who) {
  promise();
  note(std::move(end), who);
}

void use_record::append(const use_record& record) {
  uses_.insert(uses_.end(), record.uses_.begin(), record.uses_.end());
}

void use_record::lend_to(instance_id borrower) noexcept {
  for (use_point& use : uses_) use.before_loan = true;
  borrower_ = borrower;
  lent_to_instance_ = true;
}

bool use_record::is_only_of(const instance_id* who) const noexcept {
  return std::all_of(uses_.begin(), uses_.end(),
                     [who](const use_point& use) { return who != nullptr && use.who == *who; });
}

void use_record::drop_ended(const instance_id* who) noexcept {
  std::erase_if(uses_, [who](const use_point& use) {
    return (who == nullptr || use.who != *who) && has_ended(*use.end);
  });
}

void use_record::drop(const std::vector<event_handle>& waited) noexcept {
  std::erase_if(uses_, [&waited](const use_point& use) {
    return std::find(waited.begin(), waited.end(), use.end) != waited.end();
  });
}

void use_record::wait_ignoring_errors() noexcept {
  for (const use_point& use : uses_) try {
      use.end->wait();
    } catch (...) {
    }
  uses_.clear();
}

}  // namespace ferry::detail
