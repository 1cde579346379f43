// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/joined_thread.hpp>
#include <ferry/runtime/detail/worker_team.hpp>

#include <atomic>
#include <chrono>
#include <string>

namespace ferry::detail {

/// The state that the workers of a ring share about each other and about the kernel.
///
/// No worker queries the device about the kernel: the query may block while another thread waits inside the
/// driver, perhaps for this very kernel, which waits for the worker. Workers poll words that the device
/// writes. A kernel that failed writes no more words, so a separate thread queries the device after a worker
/// has waited for long.
class ring_progress {
 public:
  std::string label;
  std::atomic<event*> served{nullptr};   ///< the end of the kernel, once it is launched
  std::atomic<event*> awaited{nullptr};  ///< the end of other work that workers wait for
  bool alone = false;                    ///< whether the only worker launches the kernel after all its posts

  ring_progress() = default;
  ring_progress(const ring_progress&) = delete;
  ring_progress& operator=(const ring_progress&) = delete;
  ~ring_progress() { stop(); }

  /// Tells the other workers to stop; true for the first call.
  bool give_up() { return !given_up_.exchange(true); }

  /// Waits until reached(), which reads a word that the device writes; false if the list is given up
  /// meanwhile.
  template <class Reached>
  [[nodiscard]] bool await(const Reached& reached) {
    auto begun = clock::time_point();
    for (int looks = 1; !reached(); ++looks) {
      if (given_up_.load(std::memory_order_relaxed)) return false;
      if (looks < patience) continue;
      yield_thread();
      if (looks % spins != 0) continue;
      looks = patience;
      const auto now = clock::now();
      if (begun == clock::time_point()) begun = now;
      // A wait this long is for other work of the device, not for a slot.
      if (now - begun > short_wait) pause_thread(nap);
      if (now - begun > long_wait && !watched_.exchange(true)) watch();
      if (has_ended_.load(std::memory_order_acquire) && !reached())
        throw device_error("ferry: " + label + " ended on the device before its work did");
    }
    return true;
  }

  /// Call when the workers have ended, for good or before another kernel. Throws the last kernel's device
  /// error, if one was found.
  void end() {
    over_ = true;
    watcher_.finish();
    stop();
    over_ = watched_ = has_ended_ = false;
  }
  /// Stops querying the device.
  void stop() {
    over_ = true;
    watcher_.dismiss();
    served = awaited = nullptr;
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr int patience = 1 << 12;
  static constexpr int spins = 1 << 6;
  static constexpr std::chrono::milliseconds short_wait{2};
  static constexpr std::chrono::seconds long_wait{1};
  static constexpr long nap = 50'000;                    ///< nanoseconds
  static constexpr long between_questions = 10'000'000;  ///< nanoseconds

  void watch() {
    watcher_.hire(1, 1);
    if (watcher_.helpers() != 0) return watcher_.start(ask_);
    // No thread can be started. If the calling thread is alone, the kernel waits for nobody, so it may query.
    if (alone) static_cast<void>(knows_of_end());
    watched_ = false;
  }

  struct questions {
    ring_progress& of;
    void operator()(int) const {
      try {
        while (!of.over_.load() && !of.knows_of_end()) pause_thread(between_questions);
      } catch (...) {
        of.give_up();
        throw;
      }
    }
  };
  bool knows_of_end() {
    event* const end = served.load(std::memory_order_acquire);
    event* const other = awaited.load(std::memory_order_acquire);
    if (other != nullptr) static_cast<void>(other->ready());  // throws if the device has failed
    if (end == nullptr || !end->ready()) return false;
    has_ended_.store(true, std::memory_order_release);
    return true;
  }

  std::atomic<bool> given_up_{false};
  std::atomic<bool> watched_{false};
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> over_{false};
  questions ask_{*this};
  worker_team watcher_;
};

}  // namespace ferry::detail
