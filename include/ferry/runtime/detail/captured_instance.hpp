#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>

#include <mutex>
#include <optional>
#include <string>

namespace ferry::detail {

/// An instance that a captured verb's ticket asks for its progress, for as long as the engine lives.
template <class Exec>
class captured_instance final : public kept_instance {
 public:
  explicit captured_instance(const Exec& exec) : exec_(exec) {}
  void drop() noexcept override {
    const std::lock_guard lock(guard_);
    exec_.reset();
  }
  /// The point that the instance has reached; null where Kokkos was finalized, so that all work has ended.
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
