// SPDX-License-Identifier: Apache-2.0
#include "worker_pool.hpp"

#include <memory>

namespace ferry::detail {

std::shared_ptr<worker_pool> worker_pool::get() { return until_finalize<worker_pool>(); }

worker_thread* worker_pool::hire(int wanted, int most) {
  worker_thread* hired = nullptr;
  {
    const std::lock_guard lock(guard_);
    for (int count = 0; count < wanted; ++count) {
      worker_thread* one = idle_;
      if (one != nullptr)
        idle_ = one->next;
      else if (count == 0 || all_.size() < static_cast<std::size_t>(most))
        one = make();
      if (one == nullptr) break;
      one->next = hired;
      hired = one;
    }
  }
  for (worker_thread* each = hired; each != nullptr; each = each->next) each->call();
  return hired;
}

void worker_pool::give_back(worker_thread* hired) {
  const std::lock_guard lock(guard_);
  while (hired != nullptr) {
    worker_thread* const one = hired;
    hired = one->next;
    one->next = idle_;
    idle_ = one;
  }
}

std::size_t worker_pool::size() const {
  const std::lock_guard lock(guard_);
  return all_.size();
}

worker_thread* worker_pool::make() {
  try {
    if (all_.empty() && where_ == processor_set()) where_ = processor_set::of_process();
    all_.reserve(all_.size() + 1);
    all_.push_back(std::make_unique<worker_thread>(where_));
    return all_.back().get();
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  return nullptr;
}

}  // namespace ferry::detail
