// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/detail/ring_progress.hpp>

#include <ferry/error.hpp>

#include <atomic>
#include <chrono>
#include <thread>

namespace ferry::detail {

bool ring_progress::await_long(function_ref<bool()> reached) {
  using clock = std::chrono::steady_clock;
  constexpr int patience = 1 << 12, spins = 1 << 6;
  constexpr std::chrono::milliseconds short_wait{2};
  constexpr std::chrono::seconds long_wait{1};
  constexpr std::chrono::microseconds nap{50};
  auto begun = clock::time_point();
  for (int looks = 1; !reached(); ++looks) {
    if (given_up_.load(std::memory_order_relaxed)) return false;
    if (looks < patience) continue;
    std::this_thread::yield();
    if (looks % spins != 0) continue;
    looks = patience;
    const auto now = clock::now();
    if (begun == clock::time_point()) begun = now;
    // A wait this long is for other work of the device, not for a slot.
    if (now - begun > short_wait) std::this_thread::sleep_for(nap);
    if (now - begun > long_wait && !watched_.exchange(true)) watch();
    if (has_ended_.load(std::memory_order_acquire) && !reached())
      throw device_error("ferry: " + label + " ended on the device before its work did");
  }
  return true;
}

void ring_progress::end() {
  over_ = true;
  watcher_.finish();
  stop();
  over_ = watched_ = has_ended_ = false;
}

void ring_progress::stop() {
  over_ = true;
  watcher_.dismiss();
  served = awaited = nullptr;
}

void ring_progress::watch() {
  watcher_.hire(1, 1);
  if (watcher_.helpers() != 0) return watcher_.start(ask_);
  // No thread can be started. If the calling thread is alone, the kernel waits for nobody, so it may query.
  if (alone) static_cast<void>(knows_of_end());
  watched_ = false;
}

void ring_progress::questions::operator()(int) const {
  constexpr std::chrono::milliseconds between_questions{10};
  try {
    while (!progress.over_.load() && !progress.knows_of_end()) std::this_thread::sleep_for(between_questions);
  } catch (...) {
    progress.give_up();
    throw;
  }
}

bool ring_progress::knows_of_end() {
  event* const last = served.load(std::memory_order_acquire);
  event* const work = awaited.load(std::memory_order_acquire);
  if (work != nullptr) static_cast<void>(work->ready());  // throws if the device has failed
  if (last == nullptr || !last->ready()) return false;
  has_ended_.store(true, std::memory_order_release);
  return true;
}

}  // namespace ferry::detail
