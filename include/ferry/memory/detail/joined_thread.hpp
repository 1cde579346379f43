// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/process_identity.hpp>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>

namespace ferry::detail {

/// A thread, as std::jthread without stop tokens; see thread_mark for why. Its destructor waits for its end,
/// but not in a child of the process that started it.
class joined_thread {
 public:
  joined_thread() noexcept = default;
  /// Starts body(), by reference: the body outlives the thread and does not throw. Throws std::system_error
  /// where the system starts no more threads.
  template <class Body>
  explicit joined_thread(const Body& body) {
    start(
        [](void* given) -> void* {
          (*static_cast<const Body*>(given))();
          return nullptr;
        },
        const_cast<Body*>(&body));
  }
  joined_thread(joined_thread&& other) noexcept
      : thread_(other.thread_), runs_(other.runs_), process_(other.process_) {
    other.runs_ = false;
  }
  joined_thread& operator=(joined_thread&&) = delete;
  ~joined_thread() { join(); }

  /// Starts run(context), in place of a body.
  void start(void* (*run)(void*), void* context) {
    if (const int error = ::pthread_create(&thread_, nullptr, run, context); error != 0) refuse(error);
    runs_ = true;
    process_ = process_mark();
  }
  /// Waits for the end of the thread, if it runs.
  void join() noexcept {
    if (runs_ && process_.is_here()) ::pthread_join(thread_, nullptr);
    runs_ = false;
  }

 private:
  template <class...>
  [[noreturn, gnu::cold]] static void refuse(int error) {
    throw std::system_error(error, std::generic_category(), "ferry: a thread can't be started");
  }

  pthread_t thread_{};
  bool runs_ = false;
  process_mark process_;
};

/// The number of processors that are online, at least 1.
template <class...>
unsigned processors_online() {
  const long count = ::sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1u : static_cast<unsigned>(count);
}

/// Lets other threads run.
inline void yield_thread() noexcept { ::sched_yield(); }

/// Sleeps, also where signals arrive.
inline void pause_thread(long nanoseconds) noexcept {
  constexpr long second = 1'000'000'000;
  timespec left{nanoseconds / second, nanoseconds % second};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

}  // namespace ferry::detail
