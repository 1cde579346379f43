// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

namespace ferry::detail {

/// Remembers a thread. <thread>, with the stop tokens and semaphores that it includes, would be a twentieth
/// of what a source pays for including ferry; so ferry calls POSIX, which it needs anyway.
class thread_mark {
 public:
  /// Remembers the calling thread.
  void set() noexcept {
    thread_ = ::pthread_self();
    is_set_ = true;
  }
  void clear() noexcept { is_set_ = false; }
  [[nodiscard]] bool is_of_caller() const noexcept {
    return is_set_ && ::pthread_equal(thread_, ::pthread_self()) != 0;
  }

 private:
  pthread_t thread_{};
  bool is_set_ = false;
};

}  // namespace ferry::detail
