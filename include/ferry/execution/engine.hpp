#pragma once

#include <ferry/execution/lane_pool.hpp>
#include <ferry/execution/report_pool.hpp>
#include <ferry/memory/block_cache.hpp>
#include <ferry/memory/event.hpp>
#include <ferry/memory/spaces.hpp>

#include <Kokkos_Core.hpp>

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
  static std::shared_ptr<engine> get() {
    residence& home = residence_of_one();
    const std::lock_guard lock(home.guard);
    if (home.instance == nullptr) {
      home.instance = std::make_shared<engine>();
      Kokkos::push_finalize_hook([] {
        residence& ending = residence_of_one();
        std::shared_ptr<engine> last;
        const std::lock_guard inner(ending.guard);
        last.swap(ending.instance);
      });
    }
    return home.instance;
  }

  engine() = default;
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine() {
    for (const auto& flight : adrift_)
      if (flight.done != nullptr) flight.done->wait();
  }

  [[nodiscard]] std::shared_ptr<void> device_scratch(std::size_t bytes) { return device_.take(bytes); }
  [[nodiscard]] std::shared_ptr<void> pinned_scratch(std::size_t bytes) { return pinned_.take(bytes); }
  [[nodiscard]] typename report_pool<Backend>::lease report() { return reports_.take(); }

  [[nodiscard]] lane_pool& lanes() { return lanes_; }

  /// Keeps `resources` until `done`.
  void keep(event_handle done, std::shared_ptr<void> resources) {
    const std::lock_guard lock(guard_);
    adrift_.push_back({std::move(done), std::move(resources)});
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
  struct residence {
    std::mutex guard;
    std::shared_ptr<engine> instance;
  };
  static residence& residence_of_one() {
    static residence one;
    return one;
  }

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
