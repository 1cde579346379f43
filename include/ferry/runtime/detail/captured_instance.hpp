// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>

#include <mutex>
#include <optional>
#include <string>

namespace ferry::detail {

/// The instance of a captured verb, which its ticket queries for progress until the engine is destroyed.
template <class Exec>
class captured_instance final : public kept_instance {
 public:
  explicit captured_instance(const Exec& exec) : exec_(exec) {}
  void drop() noexcept override {
    const std::lock_guard lock(guard_);
    exec_.reset();
  }
  /// The end of the work enqueued so far; null after Kokkos::finalize, when all work has ended.
  event_handle mark(engine<execution_backend<Exec>>& home, const char* verb) {
    const std::lock_guard lock(guard_);
    if (!exec_) return nullptr;
    if (execution_backend<Exec>::capturing(*exec_))
      throw invalid_argument(
          "ferry::" + std::string(verb) +
          ": the verb is still being captured into a graph, so there is nothing to wait for; end the capture and launch the graph first");
    return home.record(*exec_);
  }

 private:
  std::mutex guard_;
  std::optional<Exec> exec_;
};

}  // namespace ferry::detail
