// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/node_pool.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

/// A pool of further instances of an execution space, for work that must not wait for the kernels of the
/// user's instance. They are made when needed and destroyed with the pool. A lease does not own its instance,
/// because no instance may outlive Kokkos.
class side_stream_pool {
 public:
  explicit side_stream_pool(std::shared_ptr<detail::node_pool> nodes = std::make_shared<detail::node_pool>());

  /// An instance of the type and on the device of `exec`, used by nobody else while the lease lives. A pool
  /// serves one type. A lease that outlives the pool may only be dropped.
  template <class Exec>
  [[nodiscard]] std::shared_ptr<Exec> take(const Exec& exec) {
    const int device = execution_backend<Exec>::device_of(exec);
    Exec* stream = nullptr;
    {
      const std::lock_guard lock(shelf_->guard);
      auto& idle = shelf_->idle;
      for (std::size_t at = idle.size(); at != 0 && stream == nullptr; --at) {
        if (idle[at - 1].device != device) continue;
        stream = static_cast<Exec*>(idle[at - 1].instance);
        idle.erase(idle.begin() + static_cast<std::ptrdiff_t>(at) - 1);
      }
    }
    if (stream == nullptr) {
      [[maybe_unused]] const auto making = execution_backend<Exec>::lock_instances();
      auto made = std::make_shared<Exec>(Kokkos::Experimental::partition_space(exec, 1)[0]);
      const std::lock_guard lock(shelf_->guard);
      shelf_->idle.reserve(shelf_->all.size() + 1);
      stream = made.get();
      shelf_->all.push_back(std::move(made));
    }
    const auto give_back = [home = shelf_, device](Exec* dropped) noexcept {
      const std::lock_guard lock(home->guard);
      if (!home->closed) home->idle.push_back({device, dropped});
    };
    return {stream, give_back, detail::node_allocator<Exec>(nodes_)};
  }

  side_stream_pool(const side_stream_pool&) = delete;
  side_stream_pool& operator=(const side_stream_pool&) = delete;
  ~side_stream_pool();

 private:
  struct lane_of_device {
    int device;
    void* instance;
  };
  struct shelf {
    std::mutex guard;
    std::vector<std::shared_ptr<void>> all;
    std::vector<lane_of_device> idle;  // has room for all
    bool closed = false;
  };
  std::shared_ptr<detail::node_pool> nodes_;
  std::shared_ptr<shelf> shelf_;
};

}  // namespace ferry::detail
