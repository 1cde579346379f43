#pragma once

#include <ferry/execution/backend.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <iterator>
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

  /// An instance of the kind and on the device of `exec` that nobody else uses while the lease lives. A pool
  /// serves one kind.
  template <class Exec>
  [[nodiscard]] std::shared_ptr<Exec> take(const Exec& exec) {
    const int device = execution_backend<Exec>::device_of(exec);
    std::shared_ptr<void> lane;
    {
      const std::lock_guard lock(shelf_->guard);
      auto& idle = shelf_->idle;
      const auto found =
          std::find_if(idle.rbegin(), idle.rend(), [&](const auto& each) { return each.device == device; });
      if (found != idle.rend()) {
        lane = std::move(found->instance);
        idle.erase(std::next(found).base());
      }
    }
    if (lane == nullptr) lane = std::make_shared<Exec>(Kokkos::Experimental::partition_space(exec, 1)[0]);
    auto* instance = static_cast<Exec*>(lane.get());
    return {instance, [home = shelf_, device, lane = std::move(lane)](Exec*) mutable {
              const std::lock_guard lock(home->guard);
              if (!home->closed) home->idle.push_back({device, std::move(lane)});
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
  struct lane_of_device {
    int device;
    std::shared_ptr<void> instance;
  };
  struct shelf {
    std::mutex guard;
    std::vector<lane_of_device> idle;
    bool closed = false;
  };
  std::shared_ptr<shelf> shelf_;
};

}  // namespace ferry
