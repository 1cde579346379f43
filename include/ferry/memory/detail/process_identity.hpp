// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/joined.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <Kokkos_Core.hpp>

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <new>
#include <string_view>

namespace ferry::detail {

/// Tells a child that fork() made from its parent. The child has a copy of every object and none of the
/// threads. So it must not wait for them, must not take a lock that one of them may have held, and must not
/// remove a file that one of them is writing. Owners of threads and files keep a process_mark and ask it.
class process_identity {
 public:
  static process_identity& get() {
    static process_identity& one = process_wide<process_identity>();
    return one;
  }
  process_identity() { ::pthread_atfork(nullptr, nullptr, &process_identity::begin_child); }

  /// Forks since the first process that loaded ferry: different in a parent and its child.
  [[nodiscard]] unsigned generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  /// Whether Kokkos was initialized when this process was forked. Its threads and devices stay with the
  /// parent, but Kokkos does not know that.
  [[nodiscard]] bool has_lost_kokkos() const noexcept { return lost_kokkos_.load(std::memory_order_relaxed); }
  /// Notes an object of the parent that this child never destroys, so that leak checkers can reach it.
  [[gnu::cold]] void abandon(const void* object) noexcept {
    auto* const made = new (std::nothrow) abandoned{object, abandoned_.load(std::memory_order_relaxed)};
    if (made == nullptr) return;
    while (!abandoned_.compare_exchange_weak(made->next, made)) {
    }
  }

 private:
  struct abandoned {
    const void* object;
    const abandoned* next;
  };

  static void begin_child() noexcept {
    process_identity& here = get();
    here.generation_.fetch_add(1, std::memory_order_relaxed);
    if (Kokkos::is_initialized()) here.lost_kokkos_.store(true, std::memory_order_relaxed);
  }

  std::atomic<unsigned> generation_{0};
  std::atomic<bool> lost_kokkos_{false};
  std::atomic<const abandoned*> abandoned_{nullptr};
};

/// From the load of the program or library on: a fork before the first use of ferry counts, too.
inline const process_identity& process_at_load = process_identity::get();

/// Remembers a process. Thread-safe.
class process_mark {
 public:
  /// Remembers the calling process.
  process_mark() noexcept : generation_(process_identity::get().generation()) {}
  process_mark(const process_mark& other) noexcept : generation_(other.generation()) {}
  process_mark& operator=(const process_mark& other) noexcept {
    generation_.store(other.generation(), std::memory_order_relaxed);
    return *this;
  }
  ~process_mark() = default;
  /// False in a child of that process.
  [[nodiscard]] bool is_here() const noexcept { return generation() == process_identity::get().generation(); }

 private:
  [[nodiscard]] unsigned generation() const noexcept { return generation_.load(std::memory_order_relaxed); }

  std::atomic<unsigned> generation_;
};

/// Refuses a call in a child. `owner` has the threads or the files; `advice` follows a semicolon.
template <class...>
[[noreturn, gnu::cold]] void refuse_child(std::string_view call, std::string_view owner,
                                          std::string_view advice) {
  throw invalid_argument(joined({"ferry::", call, ": this process was forked from the one that ", owner,
                                 " and has none of its threads; ", advice}));
}

/// Deleter of an object with threads or files, for a std::shared_ptr, which keeps the deleter. A child of the
/// process that made it leaves the object alone.
class delete_in_own_process {
 public:
  template <class T>
  void operator()(T* object) const noexcept {
    if (made_.is_here())
      delete object;
    else
      process_identity::get().abandon(object);
  }

 private:
  process_mark made_;
};

/// Locks an object that a child may use, too. `user` is the process that locked it last. A child can't have a
/// lock that another thread of its parent held at the fork: then it throws instead of waiting for ever.
template <class...>
std::unique_lock<std::mutex> lock_unless_lost(std::mutex& guard, process_mark& user, std::string_view call) {
  if (user.is_here()) return std::unique_lock(guard);
  std::unique_lock lock(guard, std::try_to_lock);
  if (!lock.owns_lock())
    refuse_child(call, "was in a call of this object", "make an object of the child's own");
  user = process_mark();
  return lock;
}

}  // namespace ferry::detail
