// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/runtime/detail/worker_team.hpp>

#include <atomic>
#include <string>

namespace ferry::detail {

/// The state that the workers of a ring share about each other and about the kernel.
///
/// No worker queries the device about the kernel: the query may block while another thread waits inside the
/// driver, perhaps for this very kernel, which waits for the worker. Workers poll words that the device
/// writes. A kernel that failed writes no more words, so a separate thread queries the device after a worker
/// has waited for long.
class ring_progress {
 public:
  std::string label;
  std::atomic<event*> served{nullptr};   ///< the end of the kernel, once it is launched
  std::atomic<event*> awaited{nullptr};  ///< the end of other work that workers wait for
  bool alone = false;                    ///< whether the only worker launches the kernel after all its posts

  ring_progress() = default;
  ring_progress(const ring_progress&) = delete;
  ring_progress& operator=(const ring_progress&) = delete;
  ~ring_progress() { stop(); }

  /// Tells the other workers to stop; true for the first call.
  bool give_up() { return !given_up_.exchange(true); }

  /// Waits until reached(), which reads a word that the device writes; false if the list is given up
  /// meanwhile.
  template <class Reached>
  [[nodiscard]] bool await(const Reached& reached) {
    return reached() || await_long(reached);
  }

  /// Call when the workers have ended, for good or before another kernel. Throws the last kernel's device
  /// error, if one was found.
  void end();
  /// Stops querying the device.
  void stop();

 private:
  struct questions {
    ring_progress& progress;
    void operator()(int) const;
  };

  [[nodiscard]] bool await_long(function_ref<bool()> reached);
  void watch();
  bool knows_of_end();

  std::atomic<bool> given_up_{false};
  std::atomic<bool> watched_{false};
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> over_{false};
  questions ask_{*this};
  worker_team watcher_;
};

}  // namespace ferry::detail
