// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace ferry::detail {

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
