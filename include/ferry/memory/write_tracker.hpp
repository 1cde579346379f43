#pragma once

#include <ferry/memory/event.hpp>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry {

/// The device's writes to a tensor in host memory that are still in flight, so that host code of a later verb
/// can wait for just these. Kept by the tensor, filled in by the verbs.
class write_tracker {
 public:
  void add(event_handle write) {
    if (write == nullptr) return;
    const std::lock_guard lock(guard_);
    std::erase_if(pending_, [](const event_handle& done) { return done->ready(); });
    pending_.push_back(std::move(write));
  }

  /// Blocks until all writes noted so far have ended. They stay noted until then, so that each of several
  /// threads waits.
  void wait() {
    std::vector<event_handle> writes;
    {
      const std::lock_guard lock(guard_);
      writes = pending_;
    }
    for (const auto& write : writes) write->wait();
    const std::lock_guard lock(guard_);
    std::erase_if(pending_, [&writes](const event_handle& ended) {
      return std::find(writes.begin(), writes.end(), ended) != writes.end();
    });
  }

 private:
  std::mutex guard_;
  std::vector<event_handle> pending_;
};

}  // namespace ferry
