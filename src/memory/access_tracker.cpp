// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/access_tracker.hpp>

#include <ferry/error.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ferry::detail {

void used_object::promise() {
  const std::lock_guard lock(guard_);
  uses_.reserve(uses_.size() + promised_ + 1);
  ++promised_;
}

void used_object::withdraw() noexcept {
  const std::lock_guard lock(guard_);
  --promised_;
}

void used_object::record(bool writes, event_handle end, instance_id who) noexcept {
  const std::lock_guard lock(guard_);
  --promised_;
  drop_ended(&who);
  // A write comes after all earlier work of its instance. A read does not stand for a write: other readers
  // need not wait for it.
  std::erase_if(uses_, [&](const use& earlier) { return earlier.who == who && (writes || !earlier.writes); });
  if (end != nullptr) uses_.push_back({std::move(end), who, writes});
}

void used_object::append(const used_object& object) {
  const std::scoped_lock lock(guard_, object.guard_);
  uses_.insert(uses_.end(), object.uses_.begin(), object.uses_.end());
}

bool used_object::is_used_by(instance_id who) const noexcept {
  const std::lock_guard lock(guard_);
  return !uses_.empty() &&
         std::all_of(uses_.begin(), uses_.end(), [who](const use& earlier) { return earlier.who == who; });
}

bool used_object::is_free_for(const instance_id* who) noexcept {
  const std::lock_guard lock(guard_);
  drop_ended(who);
  return std::all_of(uses_.begin(), uses_.end(),
                     [who](const use& earlier) { return who != nullptr && earlier.who == *who; });
}

void used_object::lend(const instance_id* who, function_ref<void(event&)> order_after) {
  const std::lock_guard lock(guard_);
  for (const use& earlier : uses_)
    if (who == nullptr || earlier.who != *who) order_after(*earlier.end);
  if (who == nullptr) uses_.clear();
  for (use& earlier : uses_) earlier.who = *who;  // its next use comes after these, and replaces them
}

void used_object::wait_ignoring_errors() noexcept {
  const std::lock_guard lock(guard_);
  for (const use& earlier : uses_) try {
      earlier.end->wait();
    } catch (...) {
    }
  uses_.clear();
}

void used_object::drop_ended(const instance_id* who) noexcept {
  std::erase_if(uses_, [who](const use& earlier) {
    return (who == nullptr || earlier.who != *who) && has_ended(*earlier.end);
  });
}

/// A cached_table in front of the tensor.
struct access_tracker::cache_in_front {
  std::string tensor;  ///< its label, in quotes
  row_hold hold = row_hold::none;
  std::thread::id opener{};  ///< of the last open()
};

access_tracker::access_tracker(int device) noexcept : device_(device) {}

access_tracker::~access_tracker() = default;

void access_tracker::add_read(event_handle end, instance_id who) {
  promise();
  record(false, std::move(end), who);
}

void access_tracker::add_write(event_handle end, instance_id who) {
  promise();
  record(true, std::move(end), who);
}

void access_tracker::append_earlier(bool writes, instance_id who, std::vector<event_handle>& events) const {
  const std::lock_guard lock(guard_);
  require_allowed(writes);
  for (const use& earlier : uses_)
    if (earlier.who != who && (writes || earlier.writes)) events.push_back(earlier.end);
}

std::vector<event_handle> access_tracker::before_read(instance_id who) const {
  std::vector<event_handle> events;
  append_earlier(false, who, events);
  return events;
}

std::vector<event_handle> access_tracker::before_write(instance_id who) const {
  std::vector<event_handle> events;
  append_earlier(true, who, events);
  return events;
}

void access_tracker::wait_for_writes() { wait(false); }

void access_tracker::wait_for_all() { wait(true); }

void access_tracker::wait(bool writes) {
  std::vector<event_handle> events;
  {
    const std::lock_guard lock(guard_);
    require_allowed(writes);
    for (const use& earlier : uses_)
      if (writes || earlier.writes) events.push_back(earlier.end);
  }
  if (events.empty()) return;
  for (const auto& event : events) event->wait();
  const std::lock_guard lock(guard_);
  std::erase_if(uses_, [&events](const use& earlier) {
    return std::find(events.begin(), events.end(), earlier.end) != events.end();
  });
}

bool access_tracker::attach_cache(const std::string& label) {
  auto attached = std::make_unique<cache_in_front>(cache_in_front{"'" + label + "'"});
  const std::lock_guard lock(guard_);
  if (cache_ != nullptr) return false;
  cache_ = std::move(attached);
  record_untracked_use();  // of exchanges, which write rows back on an instance of their own
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

void access_tracker::require_allowed(bool writes) const {
  if (cache_ == nullptr || cache_->opener == std::this_thread::get_id()) return;
  if (!writes && cache_->hold == row_hold::closed)
    throw invalid_argument("ferry: a cached_table has newer rows of " + cache_->tensor +
                           " in device memory; use the cached_table, or call its flush() first");
  if (writes && cache_->hold != row_hold::none)
    throw invalid_argument("ferry: a cached_table has rows of " + cache_->tensor +
                           " in device memory and would not see this write; write through the cached_table, "
                           "or destroy it first");
}

}  // namespace ferry::detail
