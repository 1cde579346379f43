// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  event_handle mark(engine& home, const char* verb) {
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

/// Ends a captured verb. The graph owns what its kernels use for as long as it can be launched. It releases
/// that in a thread that may not call the device's functions. The ticket shares the ownership.
template <class Exec>
[[gnu::cold]] void give_to_graph(const Exec& exec, const char* verb, const std::shared_ptr<engine>& home,
                                 ticket_state& state) {
  auto instance = std::make_shared<captured_instance<Exec>>(exec);
  home->watch(instance);
  state.mark = [home = std::weak_ptr(home), instance = std::move(instance), verb]() -> event_handle {
    const auto alive = home.lock();
    return alive == nullptr ? nullptr : instance->mark(*alive, verb);
  };
  if (state.resources.empty() && state.uses.empty()) return;
  auto content = std::make_shared<std::vector<std::shared_ptr<void>>>(state.resources);
  for (const auto& use : state.uses) content->push_back(use.owner);
  const auto last = [box = home->dropped()](std::shared_ptr<void>* bundle) { box->put(bundle); };
  execution_backend<Exec>::retain(exec,
                                  std::shared_ptr<void>(new std::shared_ptr<void>(std::move(content)), last));
}

}  // namespace ferry::detail
