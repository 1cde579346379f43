// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/function_ref.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>

namespace ferry::detail {

/// A list of items that workers share: takes pieces from the front to the back. Thread-safe.
class front_queue {
 public:
  front_queue(std::int64_t items, std::int64_t piece) : items_(items), piece_(piece) {}

  /// The next piece, or false for none.
  bool take(std::int64_t& first, std::int64_t& count) {
    first = next_.fetch_add(piece_, std::memory_order_relaxed);
    if (first >= items_) return false;
    count = std::min(piece_, items_ - first);
    return true;
  }
  /// The next item, of a queue with pieces of one item.
  bool take(std::size_t& item) {
    std::int64_t first = 0, count = 0;
    if (!take(first, count)) return false;
    item = static_cast<std::size_t>(first);
    return true;
  }
  /// Gives no further piece out.
  void stop() { next_.store(items_, std::memory_order_relaxed); }

 private:
  std::int64_t items_;
  std::int64_t piece_;
  std::atomic<std::int64_t> next_{0};
};

/// Takes pieces from the back, until they reach those of the device's teams, which take items from the front.
/// The words are those of a kernels::split_state. The device only reads the limit, so host threads may take
/// pieces by compare-and-exchange. Thread-safe.
class split_queue {
 public:
  /// `reach`: items that the device's teams process at a time.
  split_queue(std::int64_t* limit, const volatile std::int64_t* progress, int teams, std::int64_t reach,
              std::int64_t piece)
      : limit_(limit), progress_(progress), teams_(teams), reach_(reach), piece_(piece) {}

  bool take(std::int64_t& first, std::int64_t& count) {
    const std::atomic_ref<std::int64_t> limit(*limit_);
    std::int64_t end = limit.load();
    while (true) {
      const std::int64_t begin = std::max<std::int64_t>(0, end - piece_);
      if (end <= 0 || is_reached(begin)) return false;
      if (!limit.compare_exchange_weak(end, begin)) continue;
      first = begin;
      count = end - begin;
      return true;
    }
  }

 private:
  /// True if the device reaches `begin` before a worker that starts now.
  [[nodiscard]] bool is_reached(std::int64_t begin) const {
    std::int64_t front = 0;
    for (int team = 0; team < teams_; ++team)
      front = std::max(front, static_cast<std::int64_t>(progress_[team]));
    return front > 0 && begin < front + reach_;
  }

  std::int64_t* limit_;
  const volatile std::int64_t* progress_;
  int teams_;
  std::int64_t reach_;
  std::int64_t piece_;
};

class worker_pool;
class worker_thread;

/// The calling thread and helpers of the pool, which share one piece of work. The calling thread must be able
/// to do the work alone: there may be no helpers, or they may start after it has ended. Helpers are woken by
/// the constructor or hire(), and return to the pool with dismiss() or the destructor.
class worker_team {
 public:
  using work = function_ref<void(int worker)>;

  worker_team() = default;  ///< the calling thread alone
  worker_team(int helpers, int max_threads) { hire(helpers, max_threads); }
  worker_team(const worker_team&) = delete;
  worker_team& operator=(const worker_team&) = delete;
  ~worker_team() { dismiss(); }

  /// For a worker team without helpers: takes at most `helpers` of a pool of at most `max_threads` threads,
  /// and at least one if a thread can be started.
  void hire(int helpers, int max_threads);
  /// Takes helpers of another pool, which may end with the worker team.
  void hire(std::shared_ptr<worker_pool> pool, int helpers, int max_threads);
  [[nodiscard]] int helpers() const { return helpers_; }

  /// Calls task(worker) for each worker in [0, helpers()], with 0 in the calling thread. Returns when all
  /// have ended. Rethrows the first error.
  void run(work task);

  /// The helpers' part of run(). start() returns at once; the callable must live until finish(), which
  /// rethrows the first error.
  /// @{
  void start(work task);
  void finish();
  /// @}

  /// Waits for the helpers and gives them back. Their errors are dropped.
  void dismiss();

 private:
  void attempt(int worker) noexcept;
  void wait();

  std::shared_ptr<worker_pool> pool_;
  worker_thread* first_ = nullptr;
  int helpers_ = 0;
  bool started_ = false;
  std::optional<work> task_;
  std::mutex guard_;
  std::exception_ptr first_error_;
};

/// The helpers of the calling thread of parallel().
enum class helper_threads {
  pooled,        ///< threads of the worker pool
  temporary,     ///< threads that end with the call: it may outlive Kokkos
  beside_caller  ///< the same, on the processors of the calling thread: first touches bring pages near them
};

/// The threads of a call of parallel().
struct thread_choice {
  int max_threads;  ///< with the calling thread
  helper_threads helpers;
};

/// Shares [0, items) in pieces of `piece` items: calls worker(pieces, number) in the calling thread, as
/// number 0, and in helpers, each with a number of its own below `threads.max_threads`. A worker takes pieces
/// until none is left; the calling thread must be able to take all of them, because helpers may be few. After
/// an error no further piece is given out. Returns when all workers have ended, and rethrows the first error.
void parallel(std::int64_t items, std::int64_t piece, const thread_choice& threads,
              function_ref<void(front_queue& pieces, int number)> worker);

/// Calls work(first, count) for each piece, in any order, by as many threads as the default host instance
/// has.
void parallel(std::int64_t items, std::int64_t piece,
              function_ref<void(std::int64_t first, std::int64_t count)> work);

}  // namespace ferry::detail
