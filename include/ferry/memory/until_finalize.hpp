#pragma once

#include <ferry/memory/process_wide.hpp>

#include <Kokkos_Core.hpp>

#include <memory>
#include <mutex>
#include <utility>

namespace ferry::detail {

/// Kokkos keeps its hooks without a lock of its own.
inline std::mutex& finalize_hooks_guard() {
  struct hooks {
    std::mutex guard;
  };
  static hooks& one = process_wide<hooks>();
  return one.guard;
}

/// The one T of the process, shared by its libraries: made at its first use, let go of by Kokkos::finalize. Who still holds it then keeps
/// it alive; a use after that makes a new one. May be called before Kokkos::initialize: the hook is left for
/// the first call after it, because Kokkos' own statics may not have been made yet. Thread-safe.
template <class T>
std::shared_ptr<T> until_finalize() {
  struct residence {
    std::mutex guard;
    std::shared_ptr<T> instance;
    bool hooked = false;
  };
  static residence& home = process_wide<residence>();
  const std::lock_guard lock(home.guard);
  if (home.instance == nullptr) home.instance = std::make_shared<T>();
  if (!home.hooked && Kokkos::is_initialized()) {
    const std::lock_guard hooks(finalize_hooks_guard());
    Kokkos::push_finalize_hook([] {
      std::shared_ptr<T> last;  // destroyed after the lock is released
      const std::lock_guard inner(home.guard);
      last.swap(home.instance);
    });
    home.hooked = true;
  }
  return home.instance;
}

}  // namespace ferry::detail
