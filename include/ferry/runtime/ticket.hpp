#pragma once

#include <ferry/memory/detail/event.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>

#include <cstdio>
#include <exception>
#include <utility>

namespace ferry {

/// Handle of work in flight. Waits in its destructor unless it was waited for or detached; an error found
/// there can't be thrown and goes to stderr.
///
/// Of a verb that was captured into a graph it stands for all launches of that graph: wait() may be called
/// after each, and destruction neither waits nor tells what was found.
///
/// The verbs are [[nodiscard]] rather than this class: nvcc takes the class' attribute for a warning at every
/// assignment and at every then().
class ticket {
 public:
  /// Of work that has ended without findings.
  ticket() = default;
  explicit ticket(detail::ticket_state_handle state) : state_(std::move(state)) {}
  ticket(ticket&&) noexcept = default;
  ticket& operator=(ticket&& other) noexcept {
    if (this != &other) {
      end();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ticket(const ticket&) = delete;
  ticket& operator=(const ticket&) = delete;
  ~ticket() { end(); }

  /// Blocks until the verb's work has ended; then its outputs may be read on the host, where they lie there,
  /// and its operands freed. Throws what the kernels found: out_of_range for bad indices under bounds::check,
  /// invalid_argument for repeated rows under duplicates::reject. A second call does nothing.
  ///
  /// Of a captured verb: waits for all that the instance has been given so far, so launch the graph there, and
  /// throws what was found since the last call. Throws invalid_argument while the capture goes on.
  void wait() {
    if (state_ == nullptr) return;
    if (state_->mark) {
      if (const auto now = state_->mark()) now->wait();
      if (state_->find_error == nullptr) return;
      if (const auto found = state_->find_error(*state_)) std::rethrow_exception(found);
      return;
    }
    const auto state = std::move(state_);
    if (state->done != nullptr) state->done->wait();
    if (state->find_error == nullptr) return;
    if (const auto found = state->find_error(*state)) {
      if (state->ends.undo != nullptr) state->ends.undo(state->ends.owner.get());
      std::rethrow_exception(found);
    }
  }

  /// Whether wait() would return at once. Never blocks.
  [[nodiscard]] bool ready() const {
    if (state_ == nullptr) return true;
    const event_handle done = point();
    return done == nullptr || done->ready();
  }

  /// Orders all later work of `exec` behind this verb. A device instance waits on the device; a host
  /// execution space, whose kernels run in the calling thread's order, waits here. The ticket keeps its
  /// errors for wait(). Needed for arrays that are no ferry::tensor: of tensors the verbs know themselves what
  /// is in flight.
  template <class Exec>
  ticket& then(const Exec& exec) {
    static_cast<const ticket&>(*this).then(exec);
    return *this;
  }
  template <class Exec>
  const ticket& then(const Exec& exec) const {
    if (state_ == nullptr) return *this;
    if (const event_handle done = point()) execution_backend<Exec>::wait_for(exec, *done);
    return *this;
  }

  /// Gives up the handle: the work goes on, its resources are kept until it ends, its findings
  /// are dropped; a step that found bad indices then stays counted. What a captured verb uses is kept by its
  /// graph.
  void detach() {
    if (state_ == nullptr) return;
    auto state = std::move(state_);
    if (state->mark || state->resources.empty() || state->done == nullptr || state->done->ready()) return;
    // Memory that notes its own uses goes back at once, a plan's with it; nobody will ask what was found.
    state->memory.clear();
    state->sources = {};
    state->earlier.clear();
    if (const auto keeper = state->keeper.lock())
      keeper->keep(std::move(state));
    else if (!state->has_outlived_kokkos())
      state->done->wait();  // in a hook of finalize's, after the engine has gone
  }

 private:
  [[nodiscard]] event_handle point() const { return state_->mark ? state_->mark() : state_->done; }

  void end() noexcept {
    if (state_ != nullptr && (state_->mark || state_->has_outlived_kokkos())) state_ = nullptr;
    try {
      wait();
    } catch (const std::exception& lost) {
      std::fprintf(stderr, "ferry: nobody waited for this error: %s\n", lost.what());
    }
  }

  detail::ticket_state_handle state_;
};

}  // namespace ferry
