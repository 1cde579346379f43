#pragma once

#include <ferry/kernels/serve_ring.hpp>
#include <ferry/memory/event.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>

namespace ferry::detail {

/// What the workers of a ring know of each other and of the kernel.
struct ring_progress {
  std::string label;
  std::atomic<bool> given_up{false};    ///< a worker failed: the others stop
  std::atomic<event*> served{nullptr};  ///< the end of the kernel, once it is launched
};

/// A worker's side of its words. Says at the end of its life that there will be no more posts.
class ring_feed {
 public:
  ring_feed(const ring_progress& of, kernels::ring_words& own) : of_(of), own_(own) {}
  ring_feed(const ring_feed&) = delete;
  ring_feed& operator=(const ring_feed&) = delete;
  ~ring_feed() { end(); }

  /// Whether nobody has ended this feed before its worker came to begin.
  [[nodiscard]] bool begin() {
    ended_ = std::atomic_ref<std::int64_t>(own_.begun).exchange(1) != 0;
    return !ended_;
  }
  static void end_unless_begun(kernels::ring_words& words) {
    if (std::atomic_ref<std::int64_t>(words.begun).exchange(1) == 0)
      std::atomic_ref<std::int64_t>(words.posted).store(1, std::memory_order_release);
  }

  [[nodiscard]] std::int64_t posted() const { return posted_; }
  void post_next(const kernels::ring_post& next) {
    own_.posts[posted_++ % kernels::ring_words::depth] = next;
    publish();
  }
  /// There will be no more posts.
  void end() {
    ended_ = true;
    static_cast<void>(std::atomic_ref<std::int64_t>(own_.begun).exchange(1));
    publish();
  }
  [[nodiscard]] bool has_ended() const { return ended_; }
  /// Until the device has ended with so many posts; false where the list was given up meanwhile.
  [[nodiscard]] bool await(std::int64_t least) {
    const std::atomic_ref<std::int64_t> done(own_.done);
    auto look = clock::time_point();
    for (int looks = 1; done.load(std::memory_order_acquire) < least; ++looks) {
      if (of_.given_up.load(std::memory_order_relaxed)) return false;
      if (looks < patience) continue;
      std::this_thread::yield();
      if (looks % patience != 0) continue;
      looks = patience;
      // A kernel that failed answers no more; its error comes with the event. Not earlier: asking the device may block
      // while another thread waits for it within the driver, perhaps for this very kernel.
      const auto now = clock::now();
      if (look == clock::time_point()) look = now + std::chrono::seconds(1);
      if (now < look) continue;
      look = now + std::chrono::seconds(1);
      event* const served = of_.served.load(std::memory_order_acquire);
      if (served != nullptr && served->ready() && done.load(std::memory_order_acquire) < least)
        throw std::runtime_error("ferry: " + of_.label + " ended on the device before its work did");
    }
    return true;
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr int patience = 1 << 12;

  void publish() {
    std::atomic_ref<std::int64_t>(own_.posted)
        .store(2 * posted_ + (ended_ ? 1 : 0), std::memory_order_release);
  }

  const ring_progress& of_;
  kernels::ring_words& own_;
  std::int64_t posted_ = 0;
  bool ended_ = false;
};

}  // namespace ferry::detail
