// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <typeinfo>

namespace ferry::detail {

/// An object that this version of ferry has once in a process, for all its libraries: also for those that are
/// compiled with -fvisibility=hidden, and those that were opened with RTLD_LOCAL. Objects have the names of
/// their types. The first user makes one; its library must stay in the process, because others use it. It is
/// never destroyed. Thread-safe.
[[nodiscard, gnu::cold]] void* object_of_process(const char* type, void* (*make)());

/// The only T of the process, made at its first use. Keep the reference, because each call looks the name up.
template <class T>
T& process_wide() {
  return *static_cast<T*>(object_of_process(typeid(T).name(), []() -> void* { return new T; }));
}

/// Calls release(context) at Kokkos::finalize, the latest first. Only while Kokkos is initialized.
void call_at_finalize(void (*release)(void* context), void* context = nullptr);

/// An object that Kokkos::finalize releases. Other owners keep it alive; a later use makes a new one. The
/// first use after Kokkos::initialize registers it for the release. Thread-safe.
class finalized_object {
 public:
  [[nodiscard]] std::shared_ptr<void> get(std::shared_ptr<void> (*make)());
  /// Releases the object now.
  void release() noexcept;

 private:
  std::mutex guard_;
  std::shared_ptr<void> object_;
  bool registered_ = false;
};

/// The owner of the only T of the process until Kokkos::finalize.
template <class T>
finalized_object& owner_until_finalize() {
  struct owner : finalized_object {};
  static finalized_object& object = process_wide<owner>();
  return object;
}

/// The only T of the process until Kokkos::finalize, see finalized_object. May be called before
/// Kokkos::initialize.
template <class T>
std::shared_ptr<T> until_finalize() {
  return std::static_pointer_cast<T>(
      owner_until_finalize<T>().get([]() -> std::shared_ptr<void> { return std::make_shared<T>(); }));
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

/// Throws invalid_argument before Kokkos::initialize and after Kokkos::finalize. A host execution space would
/// run kernels then, and memory and threads would outlive what releases them. `subject` starts the sentence:
/// a verb or a label.
void require_kokkos(std::string_view subject);

/// Distinguishes a child that fork() made from its parent. The child has a copy of every object and none of
/// the threads. So it must not wait for them, must not take a lock that one of them may have held, and must
/// not remove a file that one of them is writing. Owners of threads and files keep a process_mark and ask it.
class process_identity {
 public:
  static process_identity& get();
  process_identity();

  /// Forks since the first process that loaded ferry: different in a parent and its child.
  [[nodiscard]] unsigned generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  /// True if Kokkos was initialized when this process was forked. Its threads and devices stay with the
  /// parent, but Kokkos does not know that.
  [[nodiscard]] bool has_lost_kokkos() const noexcept { return lost_kokkos_.load(std::memory_order_relaxed); }
  /// Keeps the address of an object of the parent that this child never destroys, so that leak checkers can
  /// reach it.
  void abandon(const void* object) noexcept;

 private:
  struct abandoned {
    const void* object;
    const abandoned* next;
  };

  std::atomic<unsigned> generation_{0};
  std::atomic<bool> lost_kokkos_{false};
  std::atomic<const abandoned*> abandoned_{nullptr};
};

/// Remembers a process. Thread-safe.
class process_mark {
 public:
  /// Remembers the calling process.
  process_mark() noexcept : process_mark(process_identity::get().generation()) {}
  process_mark(const process_mark& mark) noexcept : process_mark(mark.generation()) {}
  process_mark& operator=(const process_mark& mark) noexcept {
    generation_.store(mark.generation(), std::memory_order_relaxed);
    return *this;
  }
  ~process_mark() = default;
  /// False in a child of that process.
  [[nodiscard]] bool is_here() const noexcept { return generation() == process_identity::get().generation(); }

 private:
  explicit process_mark(unsigned generation) noexcept : generation_(generation) {}
  [[nodiscard]] unsigned generation() const noexcept { return generation_.load(std::memory_order_relaxed); }

  std::atomic<unsigned> generation_;
};

/// Refuses a call in a child. `owner` has the threads or the files; `advice` follows a semicolon.
[[noreturn]] void refuse_child(std::string_view call, std::string_view owner, std::string_view advice);

/// Refuses a call that runs kernels in a child which was forked after Kokkos::initialize.
[[noreturn]] void refuse_lost_kokkos(std::string_view call);

/// Deleter of an object with threads or files, for a std::shared_ptr, which keeps the deleter. A child of the
/// process that made it leaves the object alone.
class delete_in_own_process {
 public:
  template <class T>
  void operator()(T* object) const noexcept {
    if (creator_.is_here())
      delete object;
    else
      process_identity::get().abandon(object);
  }

 private:
  process_mark creator_;
};

/// Locks an object that a child may use, too. `user` is the process that locked it last. A child can't have a
/// lock that another thread of its parent held at the fork: then it throws instead of waiting for ever.
[[nodiscard]] std::unique_lock<std::mutex> lock_unless_lost(std::mutex& guard, process_mark& user,
                                                            std::string_view call);

}  // namespace ferry::detail
