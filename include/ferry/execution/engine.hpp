#pragma once

#include <ferry/execution/event_pool.hpp>
#include <ferry/execution/lane_pool.hpp>
#include <ferry/execution/report_pool.hpp>
#include <ferry/memory/block_cache.hpp>
#include <ferry/memory/event.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/memory/until_finalize.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry {

/// What the verbs of one backend share: scratch memory, events, reports, and the work that nobody waits for.
/// Made by the first verb, gone with Kokkos::finalize. Thread-safe.
template <class Backend>
class engine {
 public:
  static std::shared_ptr<engine> get() { return detail::until_finalize<engine>(); }

  engine() = default;
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine() {
    for (const auto& each : adrift_)
      for (const auto& work : each.work)
        if (work.done != nullptr) work.done->wait();
  }

  /// For work of any instance, or of the host.
  [[nodiscard]] std::shared_ptr<void> device_scratch(std::size_t bytes) { return device_.take(bytes); }
  /// For kernels of instance `who` alone: see block_cache::take.
  template <class OrderBehind>
  [[nodiscard]] std::shared_ptr<void> device_scratch(std::size_t bytes, instance_id who,
                                                     OrderBehind&& order_behind) {
    return device_.take(bytes, who, order_behind);
  }
  [[nodiscard]] std::shared_ptr<void> pinned_scratch(std::size_t bytes) { return pinned_.take(bytes); }
  [[nodiscard]] typename report_pool<Backend>::lease report() { return reports_.take(); }

  [[nodiscard]] lane_pool& lanes() { return lanes_; }

  /// The point in the work of `exec` that is reached now; null where it has been reached already.
  template <class Exec>
  [[nodiscard]] event_handle record(const Exec& exec) {
    return Backend::record(exec, events_);
  }

  /// Held from record() until what it recorded is noted, so that of two threads that share an instance the later
  /// point is noted last.
  [[nodiscard]] std::unique_lock<std::mutex> lock_order() { return std::unique_lock(order_guard_); }

  /// Keeps `resources` until `done`, a point in the work of instance `who`.
  void keep(event_handle done, instance_id who, std::shared_ptr<void> resources) {
    const std::lock_guard lock(guard_);
    for (auto& each : adrift_)
      if (each.who == who) {
        each.work.push_back({std::move(done), std::move(resources)});
        return;
      }
    adrift_.push_back({who, {}});
    adrift_.back().work.push_back({std::move(done), std::move(resources)});
  }

  /// Drops `resources` with the next verb, for threads that must not call the device's functions.
  void drop_later(std::shared_ptr<void> resources) {
    const std::lock_guard lock(dropped_guard_);
    dropped_.push_back(std::move(resources));
  }

  /// Lets go of what detached work no longer needs; every verb does this once. Asks the device about one point
  /// of each instance beyond those that have been reached.
  void reap() {
    std::vector<std::shared_ptr<void>> dropped;
    {
      const std::lock_guard lock(dropped_guard_);
      dropped.swap(dropped_);
    }
    std::vector<adrift> ended;  // destroyed after the lock is released
    const std::lock_guard lock(guard_);
    for (auto& each : adrift_)
      for (auto& work = each.work; !work.empty(); work.pop_front()) {
        if (work.front().done != nullptr && !work.front().done->ready()) break;
        ended.push_back(std::move(work.front()));
      }
    if (adrift_.size() > many) std::erase_if(adrift_, [](const lane& each) { return each.work.empty(); });
  }

 private:
  struct adrift {
    event_handle done;
    std::shared_ptr<void> resources;
  };

  /// Detached work of one instance, which ends in the order in which it was enqueued.
  struct lane {
    instance_id who;
    std::deque<adrift> work;
  };
  static constexpr std::size_t many = 8;

  std::mutex order_guard_;
  std::mutex guard_;
  event_pool<typename Backend::native_event> events_;
  block_cache<typename Backend::scratch_space> device_;
  block_cache<pinned_space> pinned_;
  report_pool<Backend> reports_;
  lane_pool lanes_;
  std::vector<lane> adrift_;
  std::mutex dropped_guard_;
  std::vector<std::shared_ptr<void>> dropped_;
};

}  // namespace ferry
