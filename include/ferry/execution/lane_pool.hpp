#pragma once

#include <Kokkos_Core.hpp>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry {

/// Further instances of an execution space, for work that must not wait behind an instance's kernels. Made
/// at first need, kept for the next taker.
class lane_pool {
 public:
  lane_pool() : shelf_(std::make_shared<shelf>()) {}

  /// An instance of the kind of `exec` that nobody else uses while the lease lives. A pool serves one kind.
  template <class Exec>
  [[nodiscard]] std::shared_ptr<Exec> take(const Exec& exec) {
    std::shared_ptr<void> lane;
    {
      const std::lock_guard lock(shelf_->guard);
      if (!shelf_->idle.empty()) {
        lane = std::move(shelf_->idle.back());
        shelf_->idle.pop_back();
      }
    }
    if (lane == nullptr) lane = std::make_shared<Exec>(Kokkos::Experimental::partition_space(exec, 1)[0]);
    auto* instance = static_cast<Exec*>(lane.get());
    return {instance, [home = shelf_, lane = std::move(lane)](Exec*) mutable {
              const std::lock_guard lock(home->guard);
              if (!home->closed) home->idle.push_back(std::move(lane));
            }};
  }

  lane_pool(const lane_pool&) = delete;
  lane_pool& operator=(const lane_pool&) = delete;
  ~lane_pool() {
    const std::lock_guard lock(shelf_->guard);
    shelf_->closed = true;
    shelf_->idle.clear();
  }

 private:
  struct shelf {
    std::mutex guard;
    std::vector<std::shared_ptr<void>> idle;
    bool closed = false;
  };
  std::shared_ptr<shelf> shelf_;
};

}  // namespace ferry
