#pragma once

#include <ferry/memory/detail/until_finalize.hpp>
#include <ferry/runtime/detail/processors.hpp>
#include <ferry/runtime/detail/worker_thread.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <vector>

namespace ferry::detail {

/// The threads that help the callers of verbs, made at first need. Of ferry's own, not those of a host
/// execution space: they wait for the device, and Kokkos locks an instance of the host's for as long as it
/// computes, so that whatever else computes there would wait for the device as well. What the device waits
/// for may be just that.
///
/// A thread is one worker team's until it is given back; nothing is queued, so no worker team can wait for another one's
/// end. Gone with Kokkos::finalize. A child process has none of the threads: fork before the first verb, as
/// CUDA demands too.
class worker_pool {
 public:
  static std::shared_ptr<worker_pool> get() { return until_finalize<worker_pool>(); }

  worker_pool() = default;
  worker_pool(const worker_pool&) = delete;
  worker_pool& operator=(const worker_pool&) = delete;
  ~worker_pool() = default;

  /// A list of at most `wanted` threads, awake or about to be. The pool makes no more than `most`, but for a
  /// worker team that would have none; fewer where the system starts no more. Thread-safe.
  [[nodiscard]] worker_thread* hire(int wanted, int most) {
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
  void give_back(worker_thread* hired) {
    const std::lock_guard lock(guard_);
    while (hired != nullptr) {
      worker_thread* const one = hired;
      hired = one->next;
      one->next = idle_;
      idle_ = one;
    }
  }

  /// Threads that have been made.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(guard_);
    return all_.size();
  }

 private:
  worker_thread* make() {
    try {
      if (all_.empty()) where_ = processor_set::of_process();
      all_.reserve(all_.size() + 1);
      all_.push_back(std::make_unique<worker_thread>(where_));
      return all_.back().get();
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
    return nullptr;
  }

  mutable std::mutex guard_;
  worker_thread* idle_ = nullptr;  ///< first who worked last, who may be awake
  processor_set where_;
  std::vector<std::unique_ptr<worker_thread>> all_;
};

}  // namespace ferry::detail
