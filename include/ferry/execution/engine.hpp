#pragma once

#include <ferry/execution/lane_pool.hpp>
#include <ferry/execution/report_pool.hpp>
#include <ferry/memory/block_cache.hpp>
#include <ferry/memory/block_lease.hpp>
#include <ferry/memory/event.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/memory/until_finalize.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry {

/// What the verbs of one backend share: scratch memory, reports, and the work that nobody waits for. Made by
/// the first verb, gone with Kokkos::finalize. Thread-safe.
template <class Backend>
class engine {
 public:
  static std::shared_ptr<engine> get() { return detail::until_finalize<engine>(); }

  engine() = default;
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine() {
    for (const auto& flight : adrift_)
      if (flight.done != nullptr) flight.done->wait();
  }

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

  /// Keeps `resources` until `done`.
  void keep(event_handle done, std::shared_ptr<void> resources) {
    const std::lock_guard lock(guard_);
    adrift_.push_back({std::move(done), std::move(resources)});
  }

  /// The same for work of instance `who`: scratch memory goes back at once, behind `done`.
  void keep(event_handle done, instance_id who, std::vector<std::shared_ptr<void>> resources) {
    std::erase_if(resources, [&](auto& each) { return release_behind(each, done, who); });
    if (!resources.empty())
      keep(std::move(done), std::make_shared<std::vector<std::shared_ptr<void>>>(std::move(resources)));
  }

  /// Lets go of what detached work no longer needs; every verb does this once.
  void reap() {
    std::vector<adrift> ended;  // destroyed after the lock is released
    const std::lock_guard lock(guard_);
    std::erase_if(adrift_, [&ended](adrift& flight) {
      if (flight.done != nullptr && !flight.done->ready()) return false;
      ended.push_back(std::move(flight));
      return true;
    });
  }

 private:
  struct adrift {
    event_handle done;
    std::shared_ptr<void> resources;
  };

  std::mutex guard_;
  block_cache<typename Backend::scratch_space> device_;
  block_cache<pinned_space> pinned_;
  report_pool<Backend> reports_;
  lane_pool lanes_;
  std::vector<adrift> adrift_;
};

}  // namespace ferry
