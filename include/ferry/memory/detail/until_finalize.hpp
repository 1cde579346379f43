#pragma once

#include <ferry/memory/detail/process_wide.hpp>

#include <Kokkos_Core.hpp>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The one hook by which everything of ferry's leaves with Kokkos::finalize, the latest arrival first. Kokkos
/// keeps its hooks without a lock, so nothing else of ferry's pushes one. Thread-safe.
class finalize_list {
 public:
  static finalize_list& get() {
    static finalize_list& one = process_wide<finalize_list>();
    return one;
  }

  /// Calls leave() when Kokkos is finalized. Only while Kokkos is initialized.
  void add(void (*leave)()) {
    const std::lock_guard lock(guard_);
    // A hook of somebody else's that uses ferry after ours: Kokkos can't take another hook then, so what is made
    // there stays.
    if (has_run_) return;
    if (!hooked_) {
      Kokkos::push_finalize_hook([] { get().run(); });
      hooked_ = true;
    }
    leaving_.push_back(leave);
  }

 private:
  void run() {
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

  std::mutex guard_;
  std::vector<void (*)()> leaving_;
  bool hooked_ = false;
  bool has_run_ = false;
};

/// Where the one T of the process lives.
template <class T>
struct residence {
  std::mutex guard;
  std::shared_ptr<T> instance;
  bool listed = false;

  static residence& get() {
    static residence& one = process_wide<residence>();
    return one;
  }
  /// Lets go of the T, as Kokkos::finalize does.
  static void leave() {
    std::shared_ptr<T> last;  // destroyed after the lock is released
    residence& home = get();
    const std::lock_guard lock(home.guard);
    last.swap(home.instance);
    home.listed = false;
  }
};

/// The one T of the process, shared by its libraries: made at its first use, let go of by Kokkos::finalize. Who still holds it then keeps
/// it alive; a use after that makes a new one. May be called before Kokkos::initialize: the first call after it
/// enters the T in the list. Thread-safe.
template <class T>
std::shared_ptr<T> until_finalize() {
  residence<T>& home = residence<T>::get();
  const std::lock_guard lock(home.guard);
  if (home.instance == nullptr) home.instance = std::make_shared<T>();
  if (!home.listed && Kokkos::is_initialized()) {
    finalize_list::get().add(&residence<T>::leave);
    home.listed = true;
  }
  return home.instance;
}

}  // namespace ferry::detail
