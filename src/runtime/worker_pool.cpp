// SPDX-License-Identifier: Apache-2.0
#include "worker_pool.hpp"

#include <memory>

namespace ferry::detail {

std::shared_ptr<worker_pool> worker_pool::get() { return until_finalize<worker_pool>(); }

worker_thread* worker_pool::hire(int count, int most) {
  worker_thread* hired = nullptr;
  {
    const std::lock_guard lock(guard_);
    for (int hired_count = 0; hired_count < count; ++hired_count) {
      worker_thread* thread = idle_;
      if (thread != nullptr)
        idle_ = thread->next;
      else if (hired_count == 0 || threads_.size() < static_cast<std::size_t>(most))
        thread = make();
      if (thread == nullptr) break;
      thread->next = hired;
      hired = thread;
    }
  }
  for (worker_thread* thread = hired; thread != nullptr; thread = thread->next) thread->call();
  return hired;
}

void worker_pool::give_back(worker_thread* hired) {
  const std::lock_guard lock(guard_);
  while (hired != nullptr) {
    worker_thread* const thread = hired;
    hired = thread->next;
    thread->next = idle_;
    idle_ = thread;
  }
}

std::size_t worker_pool::size() const {
  const std::lock_guard lock(guard_);
  return threads_.size();
}

worker_thread* worker_pool::make() {
  try {
    if (threads_.empty() && processors_ == processor_set()) processors_ = processor_set::of_process();
    threads_.reserve(threads_.size() + 1);
    threads_.push_back(std::make_unique<worker_thread>(processors_));
    return threads_.back().get();
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  return nullptr;
}

}  // namespace ferry::detail
