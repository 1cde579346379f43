// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/ring_progress.hpp>
#include <ferry/rows/detail/serve_ring.hpp>

#include <atomic>
#include <cstdint>

namespace ferry::detail {

/// A worker's side of its ring words. The destructor declares the end of its posts.
class ring_producer {
 public:
  ring_producer(ring_progress& progress, kernels::ring_words& words) : progress_(progress), words_(words) {}
  ring_producer(const ring_producer&) = delete;
  ring_producer& operator=(const ring_producer&) = delete;
  ~ring_producer() { end(); }

  /// False if this worker's posts were ended before it began.
  [[nodiscard]] bool begin() {
    ended_ = std::atomic_ref<std::int64_t>(words_.begun).exchange(1) != 0;
    return !ended_;
  }
  static void end_unless_begun(kernels::ring_words& words) {
    if (std::atomic_ref<std::int64_t>(words.begun).exchange(1) == 0)
      std::atomic_ref<std::int64_t>(words.posted).store(1, std::memory_order_release);
  }

  [[nodiscard]] std::int64_t posted() const { return posted_; }
  void post_next(const kernels::ring_post& next) {
    words_.posts[posted_++ % kernels::ring_words::depth] = next;
    publish();
  }
  /// Declares that there are no more posts.
  void end() {
    ended_ = true;
    static_cast<void>(std::atomic_ref<std::int64_t>(words_.begun).exchange(1));
    publish();
  }
  [[nodiscard]] bool has_ended() const { return ended_; }
  /// Waits until the device has finished `least` posts; false if the list was given up meanwhile.
  [[nodiscard]] bool await(std::int64_t least) {
    const std::atomic_ref<std::int64_t> completions(words_.completions);
    return progress_.await([&] { return completions.load(std::memory_order_acquire) >= least; });
  }
  /// Resets for the posts of another kernel, after the kernel that served the last posts has ended.
  void start_over() {
    posted_ = 0;
    ended_ = false;
    words_.completions = 0;
    publish();
  }

 private:
  void publish() {
    std::atomic_ref<std::int64_t>(words_.posted)
        .store(2 * posted_ + (ended_ ? 1 : 0), std::memory_order_release);
  }

  ring_progress& progress_;
  kernels::ring_words& words_;
  std::int64_t posted_ = 0;
  bool ended_ = false;
};

}  // namespace ferry::detail
