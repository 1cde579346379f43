// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/rows/detail/serve_ring.hpp>
#include <ferry/runtime/detail/parallel.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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
    return reached() || await_long(reached);
  }

  /// Call when the workers have ended, for good or before another kernel. Throws the last kernel's device
  /// error, if one was found.
  void end();
  /// Stops querying the device.
  void stop();

 private:
  struct questions {
    ring_progress& progress;
    void operator()(int) const;
  };

  [[nodiscard]] bool await_long(function_ref<bool()> reached);
  void watch();
  bool knows_of_end();

  std::atomic<bool> given_up_{false};
  std::atomic<bool> watched_{false};
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> over_{false};
  questions ask_{*this};
  worker_team watcher_;
};

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

/// Every piece of a list goes through the ring.
struct all_by_ring {
  template <class Visit>
  void operator()(std::int64_t first, std::int64_t count, const Visit& visit) const {
    visit(first, count);
  }
};

/// The parts of queue pieces that a ring's worker takes, one after the other.
template <class Queue, class Parts>
class queued_parts {
 public:
  queued_parts(Queue& queue, const Parts& parts) : queue_(queue), parts_(parts) {}

  bool take(kernels::ring_post& next) {
    std::int64_t first = 0, count = 0;
    while (position_ == size_) {
      if (!queue_.take(first, count)) return false;
      more_.clear();
      position_ = size_ = 0;
      parts_(first, count, [&](std::int64_t begin, std::int64_t length) {
        if (length <= 0) return;
        if (size_ == 0)
          front_ = {begin, length, 0};
        else
          more_.push_back({begin, length, 0});
        ++size_;
      });
    }
    next = position_ == 0 ? front_ : more_[position_ - 1];
    ++position_;
    return true;
  }

 private:
  Queue& queue_;
  const Parts& parts_;
  kernels::ring_post front_{};  ///< a piece without long runs needs no heap memory
  std::vector<kernels::ring_post> more_;
  std::size_t size_ = 0;
  std::size_t position_ = 0;
};

}  // namespace ferry::detail
