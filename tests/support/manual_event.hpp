// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/event.hpp>

#include <atomic>

namespace ferry_test {

/// An event that the test ends by hand, and that counts who waited for it and who asked.
class manual_event final : public ferry::detail::event {
 public:
  void wait() override {
    ++waits;
    ended.wait(false);
  }
  [[nodiscard]] bool ready() override {
    ++questions;
    return ended.load();
  }
  void end() {
    ended = true;
    ended.notify_all();
  }
  std::atomic<bool> ended{false};
  std::atomic<int> waits{0};
  std::atomic<int> questions{0};
};

}  // namespace ferry_test
