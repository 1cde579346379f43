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
  explicit ticket(detail::flight_handle flight) : flight_(std::move(flight)) {}
  ticket(ticket&&) noexcept = default;
  ticket& operator=(ticket&& other) noexcept {
    if (this != &other) {
      end();
      flight_ = std::move(other.flight_);
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
    if (flight_ == nullptr) return;
    if (flight_->mark) {
      if (const auto now = flight_->mark()) now->wait();
      if (flight_->find_error == nullptr) return;
      if (const auto found = flight_->find_error(*flight_)) std::rethrow_exception(found);
      return;
    }
    const auto flight = std::move(flight_);
    if (flight->done != nullptr) flight->done->wait();
    if (flight->find_error == nullptr) return;
    if (const auto found = flight->find_error(*flight)) {
      if (flight->ends.undo != nullptr) flight->ends.undo(flight->ends.owner.get());
      std::rethrow_exception(found);
    }
  }

  /// Whether wait() would return at once. Never blocks.
  [[nodiscard]] bool ready() const {
    if (flight_ == nullptr) return true;
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
    if (flight_ == nullptr) return *this;
    if (const event_handle done = point()) execution_backend<Exec>::wait_for(exec, *done);
    return *this;
  }

  /// Gives up the handle: the work goes on, its resources are kept until it ends, its findings
  /// are dropped; a step that found bad indices then stays counted. What a captured verb uses is kept by its
  /// graph.
  void detach() {
    if (flight_ == nullptr) return;
    auto flight = std::move(flight_);
    if (flight->mark || flight->resources.empty() || flight->done == nullptr || flight->done->ready()) return;
    // Memory that notes its own uses goes back at once, a plan's with it; nobody will ask what was found.
    flight->memory.clear();
    flight->sources = {};
    flight->earlier.clear();
    if (const auto keeper = flight->keeper.lock())
      keeper->keep(std::move(flight));
    else if (!flight->has_outlived_kokkos())
      flight->done->wait();  // in a hook of finalize's, after the engine has gone
  }

 private:
  [[nodiscard]] event_handle point() const { return flight_->mark ? flight_->mark() : flight_->done; }

  void end() noexcept {
    if (flight_ != nullptr && (flight_->mark || flight_->has_outlived_kokkos())) flight_ = nullptr;
    try {
      wait();
    } catch (const std::exception& lost) {
      std::fprintf(stderr, "ferry: nobody waited for this error: %s\n", lost.what());
    }
  }

  detail::flight_handle flight_;
};

}  // namespace ferry
