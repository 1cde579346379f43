// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/until_finalize.hpp>

#include <ferry/memory/detail/process_wide.hpp>

#include <Kokkos_Core.hpp>

#include <mutex>
#include <vector>

namespace ferry::detail {

/// The only Kokkos::finalize hook of ferry. It releases ferry's objects, the latest first. Kokkos does not
/// lock its list of hooks, so ferry pushes no other. Thread-safe.
class finalize_list {
 public:
  static finalize_list& get();
  void add(void (*leave)());

 private:
  void run();

  std::mutex guard_;
  std::vector<void (*)()> leaving_;
  bool hooked_ = false;
  bool has_run_ = false;
};

finalize_list& finalize_list::get() {
  static finalize_list& one = process_wide<finalize_list>();
  return one;
}

void finalize_list::add(void (*leave)()) {
  const std::lock_guard lock(guard_);
  // Another hook uses ferry after this one has run. Kokkos takes no more hooks then, so new objects stay.
  if (has_run_) return;
  if (!hooked_) {
    Kokkos::push_finalize_hook([] { get().run(); });
    hooked_ = true;
  }
  leaving_.push_back(leave);
}

void finalize_list::run() {
  for (;;) {
    void (*leave)() = nullptr;
    {
      const std::lock_guard lock(guard_);
      if (leaving_.empty()) {
        has_run_ = true;
        return;
      }
      leave = leaving_.back();
      leaving_.pop_back();
    }
    leave();
  }
}

void call_at_finalize(void (*leave)()) { finalize_list::get().add(leave); }

}  // namespace ferry::detail
