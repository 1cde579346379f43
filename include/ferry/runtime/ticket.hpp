// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/trace_span.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>
#include <ferry/runtime/detail/unheard_findings.hpp>

#include <exception>
#include <utility>

namespace ferry {

/// Handle of work in flight. Move-only. The destructor waits unless wait() or detach() was called; it prints
/// an error to stderr, because it can't throw. In a child of the process it does nothing.
///
/// The ticket of a verb that was captured into a graph covers all launches of that graph. wait() may be
/// called after each launch. The destructor neither waits nor reports errors.
///
/// The verbs are [[nodiscard]] instead of this class: nvcc would warn at every assignment and at every
/// then().
class ticket {
 public:
  /// A ticket of work that has ended without an error.
  ticket() = default;
  /// For the verbs.
  explicit ticket(detail::ticket_state_handle state) : state_(std::move(state)) {}
  /// Takes the work of the other ticket.
  ticket(ticket&&) noexcept = default;
  /// Waits for the previous work as the destructor does, then takes that of `other`.
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

  /// Blocks until the work of the verb has ended. Then the host may read outputs in host memory, and the
  /// operands may be freed. Throws the errors that kernels found: out_of_range for bad indices under
  /// bounds::check, invalid_argument for repeated rows under duplicates::reject and for gradients under
  /// nonfinite::reject; device_error where the device failed. A second call does nothing.
  ///
  /// Where this verb has no error, it throws the oldest one of detached work of the instance, once.
  ///
  /// For a captured verb it waits for all work enqueued on the instance so far, so launch the graph on that
  /// instance. It throws the errors found since the last call, and invalid_argument before the capture has
  /// ended.
  void wait();

  /// Whether wait() would return without blocking. Never blocks.
  [[nodiscard]] bool ready() const;

  /// Orders all later work of `exec` after this verb. A device instance waits on the device. For a host
  /// execution space, whose kernels run in the order of the calling thread, the call blocks. Errors are still
  /// thrown by wait(). Needed for arrays that are not a ferry::tensor; tensors record their reads and writes
  /// in flight.
  /// @{
  template <class Exec>
  ticket& then(const Exec& exec) {
    static_cast<const ticket&>(*this).then(exec);
    return *this;
  }
  template <class Exec>
  const ticket& then(const Exec& exec) const {
    if (state_ == nullptr) return *this;
    if (const detail::event_handle done = point()) execution_backend<Exec>::wait_for(exec, *done);
    return *this;
  }
  /// @}

  /// Gives up the handle and never blocks, except inside of Kokkos::finalize. The work continues, and its
  /// scratch memory is kept until it ends. Its error is thrown by the next wait() for work of the instance,
  /// or by the next() of a prefetcher of that; else Kokkos::finalize prints it. A step with bad indices
  /// stays counted. The graph of a captured verb keeps what the verb uses, and reports no errors.
  void detach();

  /// For the verbs, about their own parts.
  /// @{
  /// As wait(), for the errors of this work alone.
  void join();
  /// As detach(), without the errors: those are the whole verb's.
  void drop();
  /// Waits, and throws the error of detached work of the instance. wait() may follow.
  void hear() const;
  /// @}

 private:
  [[nodiscard]] detail::event_handle point() const;

  static void leave(detail::ticket_state_handle state);

  void end() noexcept;

  detail::ticket_state_handle state_;
};

#ifdef FERRY_RUNTIME_BODIES

FERRY_INLINE void ticket::wait() {
  if (state_ == nullptr) return;
  const auto home = state_->keeper.lock();
  const auto who = state_->who;
  join();
  if (home == nullptr) return;
  if (const auto earlier = home->take_finding(who)) std::rethrow_exception(earlier);
}

FERRY_INLINE void ticket::join() {
  if (state_ == nullptr) return;
  const detail::trace_span waiting("ferry::wait", {}, "wait");
  if (state_->mark) {
    if (const auto now = state_->mark()) now->wait();
    if (state_->find_error == nullptr) return;
    if (const auto found = state_->find_error(*state_)) std::rethrow_exception(found);
    return;
  }
  const auto state = std::move(state_);
  if (state->done != nullptr) state->done->wait();
  if (const auto found = state->finding()) {
    if (state->ends.undo != nullptr) state->ends.undo(state->ends.owner.get());
    std::rethrow_exception(found);
  }
}

FERRY_INLINE void ticket::hear() const {
  if (state_ == nullptr || state_->mark) return;
  if (state_->done != nullptr) state_->done->wait();
  if (const auto home = state_->keeper.lock())
    if (const auto earlier = home->take_finding(state_->who)) std::rethrow_exception(earlier);
}

FERRY_INLINE bool ticket::ready() const {
  if (state_ == nullptr) return true;
  const detail::event_handle done = point();
  return done == nullptr || done->ready();
}

FERRY_INLINE void ticket::detach() {
  if (state_ == nullptr) return;
  auto state = std::move(state_);
  if (state->give_up != nullptr)
    state->give_up(*state);
  else if (!state->mark)
    leave(std::move(state));
}

FERRY_INLINE void ticket::drop() {
  if (state_ == nullptr) return;
  auto state = std::move(state_);
  if (state->mark) return;
  state->find_error = nullptr;
  leave(std::move(state));
}

FERRY_INLINE void ticket::leave(detail::ticket_state_handle state) {
  if (!state->process.is_here()) {
    detail::process_identity::get().abandon(state.release());  // its event and its pool are the parent's
    return;
  }
  const bool checks = state->find_error != nullptr;
  const bool has_ended = state->done == nullptr || detail::has_ended(*state->done);
  if (!checks && (has_ended || state->resources.empty())) return;
  // Memory with a record of its uses is returned at once, also a plan's.
  state->memory.clear();
  state->earlier.clear();
  state->take_nothing_back();
  if (!checks) state->sources = {};
  const auto keeper = state->keeper.lock();
  if (!has_ended && keeper != nullptr) return keeper->keep(std::move(state));
  // In a finalize hook, after the engine was destroyed: waits.
  if (!has_ended && !state->has_outlived_kokkos()) state->done->wait();
  const auto found = state->finding();
  if (found == nullptr) return;
  if (keeper != nullptr)
    keeper->add_finding(state->who, found);
  else
    detail::print_unheard(found);
}

FERRY_INLINE detail::event_handle ticket::point() const {
  return state_->mark ? state_->mark() : state_->done;
}

FERRY_INLINE void ticket::end() noexcept {
  if (state_ == nullptr) return;
  if (!state_->process.is_here()) {
    detail::process_identity::get().abandon(state_.release());
    return;
  }
  if (state_->mark || state_->has_outlived_kokkos()) state_ = nullptr;
  try {
    join();
  } catch (...) {
    detail::print_unheard(std::current_exception());
  }
}

#endif

}  // namespace ferry
