// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <string_view>

namespace ferry::detail {

/// Tells a child that fork() made from its parent. The child has a copy of every object and none of the
/// threads. So it must not wait for them, must not take a lock that one of them may have held, and must not
/// remove a file that one of them is writing. Owners of threads and files keep a process_mark and ask it.
class process_identity {
 public:
  static process_identity& get();
  process_identity();

  /// Forks since the first process that loaded ferry: different in a parent and its child.
  [[nodiscard]] unsigned generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  /// True if Kokkos was initialized when this process was forked. Its threads and devices stay with the
  /// parent, but Kokkos does not know that.
  [[nodiscard]] bool has_lost_kokkos() const noexcept { return lost_kokkos_.load(std::memory_order_relaxed); }
  /// Notes an object of the parent that this child never destroys, so that leak checkers can reach it.
  void abandon(const void* object) noexcept;

 private:
  struct abandoned {
    const void* object;
    const abandoned* next;
  };

  static void begin_child() noexcept;

  std::atomic<unsigned> generation_{0};
  std::atomic<bool> lost_kokkos_{false};
  std::atomic<const abandoned*> abandoned_{nullptr};
};

/// Remembers a process. Thread-safe.
class process_mark {
 public:
  /// Remembers the calling process.
  process_mark() noexcept;
  process_mark(const process_mark& mark) noexcept : generation_(mark.generation()) {}
  process_mark& operator=(const process_mark& mark) noexcept {
    generation_.store(mark.generation(), std::memory_order_relaxed);
    return *this;
  }
  ~process_mark() = default;
  /// False in a child of that process.
  [[nodiscard]] bool is_here() const noexcept;

 private:
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
