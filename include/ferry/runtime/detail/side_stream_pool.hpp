// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/free_list.hpp>
#include <ferry/memory/detail/node_pool.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
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
  explicit side_stream_pool(std::shared_ptr<detail::node_pool> nodes = std::make_shared<detail::node_pool>())
      : nodes_(std::move(nodes)) {}
  side_stream_pool(const side_stream_pool&) = delete;
  side_stream_pool& operator=(const side_stream_pool&) = delete;
  ~side_stream_pool() { static_cast<void>(idle_->close()); }

  /// An instance of the type and on the device of `exec`, used by nobody else while the lease lives. A pool
  /// serves one type. A lease that outlives the pool may only be dropped.
  template <class Exec>
  [[nodiscard]] std::shared_ptr<Exec> take(const Exec& exec) {
    const int device = execution_backend<Exec>::device_of(exec);
    auto* instance = static_cast<Exec*>(take_idle(device));
    if (instance == nullptr) {
      [[maybe_unused]] const auto lock = execution_backend<Exec>::lock_instances();
      auto fresh = std::make_shared<Exec>(Kokkos::Experimental::partition_space(exec, 1)[0]);
      instance = fresh.get();
      const std::lock_guard lock_all(guard_);
      instances_.reserve(instances_.size() + 1);
      idle_->expect(1);
      instances_.push_back(std::move(fresh));
    }
    const auto give_back = [idle = idle_, device](Exec* dropped) noexcept { idle->put({device, dropped}); };
    return {instance, give_back, detail::node_allocator<Exec>(nodes_)};
  }

 private:
  struct idle_instance {
    int device = -1;
    void* instance = nullptr;
  };
  using list = free_list<idle_instance>;

  void* take_idle(int device) {
    return idle_
        ->take([device](const std::vector<idle_instance>& idle) {
          std::size_t place = idle.size();
          while (place-- != 0)
            if (idle[place].device == device) break;
          return place;
        })
        .instance;
  }

  std::shared_ptr<detail::node_pool> nodes_;
  std::shared_ptr<list> idle_ = std::make_shared<list>();
  std::mutex guard_;
  std::vector<std::shared_ptr<void>> instances_;
};

}  // namespace ferry::detail
