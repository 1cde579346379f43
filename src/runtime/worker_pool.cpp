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

processor_set processor_set::of_process() {
  struct closer {
    void operator()(DIR* open) const { closedir(open); }
  };
  processor_set processors;
  const std::unique_ptr<DIR, closer> tasks(opendir("/proc/self/task"));
  if (tasks == nullptr) return processors;
  while (const dirent* task = readdir(tasks.get())) {
    const auto id = static_cast<pid_t>(std::strtol(task->d_name, nullptr, 10));
    if (id > 0) processors.add(of_thread(id));
  }
  return processors;
}

processor_set processor_set::of_thread(pid_t id) {
  processor_set processors;
  if (sched_getaffinity(id, sizeof processors.bits_, reinterpret_cast<cpu_set_t*>(processors.bits_.data())) !=
      0)
    processors.bits_ = {};  // the thread has just ended
  return processors;
}

void processor_set::take() const {
  if (*this != processor_set())
    static_cast<void>(sched_setaffinity(0, sizeof bits_, reinterpret_cast<const cpu_set_t*>(bits_.data())));
}

void processor_set::add(const processor_set& added) {
  for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] |= added.bits_[i];
}

}  // namespace ferry::detail
