// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/engine.hpp>

#include <memory>
#include <vector>

namespace ferry::detail {

namespace {

bool work_has_ended(ticket_state& work) noexcept {
  return work.completion == nullptr || has_ended(*work.completion);
}

void wait_ignoring_errors(ticket_state& work) noexcept {
  try {
    if (work.completion != nullptr) work.completion->wait();
  } catch (...) {
  }
}

}  // namespace

void engine::close() noexcept {
  hear_captured(0, nullptr, true);
  while (captured_ != nullptr) ticket_state_return{}(std::exchange(captured_, captured_->next));
  for (const auto& list : detached_)
    for (auto* work = list.first; work != nullptr; work = work->next) wait_ignoring_errors(*work);
  drop_all([](ticket_state&) { return true; });
  for (std::shared_ptr<void>* const last : dropped_->close()) delete last;
  for (const auto& instance : instances_)
    if (const auto alive = instance.lock()) alive->drop();
}

void engine::watch(std::weak_ptr<kept_instance> instance) {
  const std::lock_guard lock(guard_);
  std::erase_if(instances_, [](const auto& gone) { return gone.expired(); });
  instances_.push_back(std::move(instance));
}

void engine::add_finding(instance_id who, const std::exception_ptr& error) noexcept {
  unheard_.add(who, error);
}

std::exception_ptr engine::take_finding(instance_id who, stream_handle stream) noexcept {
  if (keeps_work_.load(std::memory_order_relaxed)) drop_all(&work_has_ended);
  if (keeps_captured_.load(std::memory_order_relaxed)) hear_captured(who, stream);
  return unheard_.take(who);
}

void engine::keep(ticket_state_handle work) noexcept {
  if (work->mark) {
    const std::lock_guard lock(captured_guard_);
    work->next = captured_;
    captured_ = work.release();
    keeps_captured_.store(true, std::memory_order_relaxed);
    return;
  }
  {
    const std::lock_guard lock(guard_);
    if (detached_tickets* const list = detached_of(work->who)) {
      ticket_state* const added = work.release();
      added->next = nullptr;
      (list->first == nullptr ? list->first : list->last->next) = added;
      list->last = added;
      keeps_work_.store(true, std::memory_order_relaxed);
      return;
    }
  }
  wait_ignoring_errors(*work);  // no memory to keep it
  hear(*work);
}

void engine::reap() {
  while (std::shared_ptr<void>* const last = dropped_->take()) {
    dropped_->forget(1);
    delete last;
  }
  if (keeps_work_.load(std::memory_order_relaxed)) drop_all(&work_has_ended);
}

engine::detached_tickets* engine::detached_of(instance_id who) noexcept {
  for (auto& list : detached_)
    if (list.who == who) return &list;
  try {
    detached_.push_back({who});
    return &detached_.back();
  } catch (...) {
    return nullptr;
  }
}

void engine::hear_captured(instance_id who, stream_handle stream, bool everyone) noexcept {
  ticket_state* useless = nullptr;  // destroyed after the lock is released
  {
    const std::lock_guard lock(captured_guard_);
    for (ticket_state** link = &captured_; *link != nullptr;) {
      ticket_state& verb = **link;
      if ((everyone || verb.stream == stream) && verb.is_raised()) try {
          if (!everyone)  // at the end of Kokkos the caller may have destroyed the stream
            if (const auto point = verb.mark()) point->wait();
          verb.who = who;
          hear(verb);
          verb.sources.plan = nullptr;  // its findings stay in the report
        } catch (...) {  // still being captured, or the device failed: a later wait reads the report
        }
      if (verb.can_be_raised() || verb.is_raised()) {
        link = &verb.next;
      } else {
        *link = verb.next;
        verb.next = std::exchange(useless, &verb);
      }
    }
    keeps_captured_.store(captured_ != nullptr, std::memory_order_relaxed);
  }
  while (useless != nullptr) ticket_state_return{}(std::exchange(useless, useless->next));
}

void engine::hear(ticket_state& ended) noexcept {
  if (const auto error = ended.finding()) unheard_.add(ended.who, error);
}

void engine::drop_all(bool (*has_ended)(ticket_state&)) noexcept {
  ticket_state* ended = nullptr;  // destroyed after the lock is released
  {
    const std::lock_guard lock(guard_);
    for (auto& list : detached_)
      while (list.first != nullptr && has_ended(*list.first)) {
        ticket_state* const work = std::exchange(list.first, list.first->next);
        hear(*work);  // with the lock: a wait of another thread must not come between
        work->next = std::exchange(ended, work);
      }
    bool keeps_work = false;
    for (const auto& list : detached_) keeps_work = keeps_work || list.first != nullptr;
    keeps_work_.store(keeps_work, std::memory_order_relaxed);
    if (detached_.size() > many)
      std::erase_if(detached_, [](const detached_tickets& list) { return list.first == nullptr; });
  }
  while (ended != nullptr) ticket_state_return{}(std::exchange(ended, ended->next));
}

}  // namespace ferry::detail
