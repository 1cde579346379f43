// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/process_wide.hpp>

#include <Kokkos_Core.hpp>

#include <memory>
#include <mutex>

namespace ferry::detail {

/// Calls leave() at Kokkos::finalize, the latest first. Only while Kokkos is initialized. Thread-safe.
void call_at_finalize(void (*leave)());

/// The place of the only T of the process.
template <class T>
struct residence {
  std::mutex guard;
  std::shared_ptr<T> instance;
  bool listed = false;

  static residence& get() {
    static residence& one = process_wide<residence>();
    return one;
  }
  /// Releases the T; called by Kokkos::finalize.
  static void leave() {
    std::shared_ptr<T> last;  // destroyed after the lock is released
    residence& home = get();
    const std::lock_guard lock(home.guard);
    last.swap(home.instance);
    home.listed = false;
  }
};

/// The only T of the process, shared by its libraries. Made at its first use, released by Kokkos::finalize.
/// Other owners keep it alive; a later use makes a new one. May be called before Kokkos::initialize; the
/// first call after it lists the T for the release. Thread-safe.
template <class T>
std::shared_ptr<T> until_finalize() {
  residence<T>& home = residence<T>::get();
  const std::lock_guard lock(home.guard);
  if (home.instance == nullptr) home.instance = std::make_shared<T>();
  if (!home.listed && Kokkos::is_initialized()) {
    call_at_finalize(&residence<T>::leave);
    home.listed = true;
  }
  return home.instance;
}

}  // namespace ferry::detail
