// SPDX-License-Identifier: Apache-2.0
#include "worker_thread.hpp"

#include "signals_elsewhere.hpp"

namespace ferry::detail {

worker_thread::worker_thread(const processor_set& processors) : processors_(processors) {
  const signals_elsewhere blocked;
  thread_ = std::jthread([this] { run(); });
}

worker_thread::~worker_thread() { become(state::leaving); }

void worker_thread::call() {
  const std::lock_guard lock(guard_);
  ++calls_;
  if (asleep_) wake_.notify_one();
}

void worker_thread::begin(work function, void* context, int worker) {
  work_ = function;
  context_ = context;
  worker_ = worker;
  become(state::busy);
}

void worker_thread::wait() {
  for (int looks = 0; looks < patience; ++looks) {
    if (!is_busy()) return;
    if (looks % spins == 0) std::this_thread::yield();
  }
  std::unique_lock lock(guard_);
  awaited_ = true;
  ended_.wait(lock, [&] { return !is_busy(); });
  awaited_ = false;
}

void worker_thread::become(state next_state) {
  const std::lock_guard lock(guard_);
  state_.store(next_state, std::memory_order_release);
  if (next_state == state::busy) heard_ = calls_;
  if (next_state == state::idle) {
    if (awaited_) ended_.notify_one();
  } else if (asleep_) {
    wake_.notify_one();
  }
}

void worker_thread::run() {
  processors_.take();
  while (!next_is_to_leave()) {
    work_(context_, worker_);
    become(state::idle);
  }
}

bool worker_thread::next_is_to_leave() {
  while (true) {
    const auto until = clock::now() + awake;
    for (int looks = 1; looks % spins != 0 || clock::now() < until; ++looks) {
      const state now = state_.load(std::memory_order_acquire);
      if (now != state::idle) return now == state::leaving;
      if (looks % spins == 0) std::this_thread::yield();
    }
    std::unique_lock lock(guard_);
    asleep_ = true;
    wake_.wait(lock,
               [&] { return state_.load(std::memory_order_relaxed) != state::idle || calls_ != heard_; });
    asleep_ = false;
    heard_ = calls_;
  }
}

}  // namespace ferry::detail
