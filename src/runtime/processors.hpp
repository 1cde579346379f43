// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace ferry::detail {

/// A set of processors that threads may run on; empty if the system does not tell.
class processor_set {
 public:
  /// The processors of all threads of the process. Those of the calling thread are too few: an OpenMP library
  /// binds the thread of main() to one place, and new threads inherit the binding. Together, the threads of a
  /// host execution space have the processors that the user gave the process.
  static processor_set of_process();
  /// The processors of one thread; 0 for the calling thread.
  static processor_set of_thread(pid_t id = 0);

  /// Lets the calling thread run on the processors of the set. Changes nothing for an empty set.
  void take() const;

  void add(const processor_set& added);
  [[nodiscard]] bool operator==(const processor_set&) const = default;

 private:
  // More than any Linux kernel supports.
  alignas(cpu_set_t) std::array<unsigned long, 1024> bits_{};
};

/// Blocks signals to the process in threads that are made during its lifetime. Signals that a thread raises
/// itself still reach it.
class signals_elsewhere {
 public:
  signals_elsewhere() {
    sigset_t most;
    sigfillset(&most);
    for (const int raised : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF})
      sigdelset(&most, raised);
    pthread_sigmask(SIG_BLOCK, &most, &before_);
  }
  signals_elsewhere(const signals_elsewhere&) = delete;
  signals_elsewhere& operator=(const signals_elsewhere&) = delete;
  ~signals_elsewhere() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace ferry::detail
