// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <typeinfo>

namespace ferry::detail {

/// The objects of this version of ferry that a process has once, for all its libraries: also for those that
/// are compiled with -fvisibility=hidden, and those that were opened with RTLD_LOCAL. Objects have the names
/// of their types. The first user makes one; its library must stay in the process, because others use it.
/// Thread-safe.
class process_runtime {
 public:
  /// The place of an object that Kokkos::finalize releases. Other owners keep it alive; a later use makes a
  /// new one. The first use after Kokkos::initialize lists it for the release.
  class place {
   public:
    [[nodiscard]] std::shared_ptr<void> get(std::shared_ptr<void> (*make)());
    /// Releases the object now.
    void release() noexcept;

   private:
    std::mutex guard_;
    std::shared_ptr<void> object_;
    bool listed_ = false;
  };

  [[nodiscard, gnu::cold]] static process_runtime& get();
  process_runtime();
  process_runtime(const process_runtime&) = delete;
  process_runtime& operator=(const process_runtime&) = delete;
  ~process_runtime() = delete;

  /// An object that is never destroyed.
  [[nodiscard, gnu::cold]] void* object(const char* type, void* (*make)());
  [[nodiscard, gnu::cold]] place& place_of(const char* type);

  /// Calls release(context) at Kokkos::finalize, the latest first. Only while Kokkos is initialized.
  void call_at_finalize(void (*release)(void* context), void* context = nullptr);

 private:
  struct content;

  void finalize();

  content* const content_;
};

/// The only T of the process, made at its first use and never destroyed. Keep the reference, because each
/// call looks the name up.
template <class T>
T& process_wide() {
  void* (*const make)() = []() -> void* { return new T; };
  return *static_cast<T*>(process_runtime::get().object(typeid(T).name(), make));
}

/// The place of the only T of the process that Kokkos::finalize releases.
template <class T>
process_runtime::place& place_until_finalize() {
  static process_runtime::place& place = process_runtime::get().place_of(typeid(T).name());
  return place;
}

/// The only T of the process until Kokkos::finalize, see process_runtime::place. May be called before
/// Kokkos::initialize.
template <class T>
std::shared_ptr<T> until_finalize() {
  return std::static_pointer_cast<T>(
      place_until_finalize<T>().get([]() -> std::shared_ptr<void> { return std::make_shared<T>(); }));
}

/// A pointer for each thread, where the first library that asks keeps it.
template <class T>
struct thread_pointer {
  T*& (*of_this_thread)() = []() -> T*& {
    thread_local T* pointer = nullptr;
    return pointer;
  };
};

/// The calling thread's pointer to a T, one for all libraries of the process; null at first.
template <class T>
T*& thread_wide() {
  static T*& (*const of_this_thread)() = process_wide<thread_pointer<T>>().of_this_thread;
  return of_this_thread();
}

}  // namespace ferry::detail
