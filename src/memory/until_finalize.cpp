// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/until_finalize.hpp>

namespace ferry::detail {

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

}  // namespace ferry::detail
