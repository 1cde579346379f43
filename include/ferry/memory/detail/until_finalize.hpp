// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <Kokkos_Core.hpp>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The only Kokkos::finalize hook of ferry. It releases ferry's objects, the latest first. Kokkos does not
/// lock its list of hooks, so ferry pushes no other. Thread-safe.
class finalize_list {
 public:
  static finalize_list& get();

  /// Calls leave() at Kokkos::finalize. Only while Kokkos is initialized.
  void add(void (*leave)());

 private:
  void run();

  std::mutex guard_;
  std::vector<void (*)()> leaving_;
  bool hooked_ = false;
  bool has_run_ = false;
};

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
/// first call after it adds the T to the finalize_list. Thread-safe.
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
