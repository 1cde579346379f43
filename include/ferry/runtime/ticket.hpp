// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>

#include <concepts>
#include <exception>
#include <utility>

namespace ferry {

/// Handle of work in flight. Move-only. The destructor waits unless wait() or detach() was called; it prints
/// an error to stderr, because it can't throw. In a child of the process it does nothing.
///
/// The ticket of a verb that was captured into a graph covers all launches of that graph. wait() may be
/// called after each launch. The destructor does not wait; later findings of launches are those of detached
/// work.
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
  /// Waits for the previous work as the destructor does, then takes that of `source`.
  ticket& operator=(ticket&& source) noexcept {
    if (this != &source) {
      end();
      state_ = std::move(source.state_);
    }
    return *this;
  }
  ticket(const ticket&) = delete;  // one ticket waits for the work
  ticket& operator=(const ticket&) = delete;
  /// Refuses a copy, for which compilers say the sentence. Does not compile.
  template <std::same_as<ticket> Self>
  ticket(Self&) {
    static_assert(
        sizeof(Self) == 0,
        "ferry: a ticket is not copied, because one of them waits for the work: std::move hands it on, and a function takes it by reference.");
  }
  ~ticket() { end(); }

  /// Blocks until the work of the verb has ended. Then the host may read outputs in host memory, and the
  /// operands may be freed. Throws the errors that kernels found: out_of_range for bad indices under
  /// bounds::check, invalid_argument for repeated rows under duplicates::reject and for gradients under
  /// nonfinite::reject; device_error if the device failed. A second call does nothing.
  ///
  /// Where this verb has no error, it throws the oldest one of detached work of the instance, once.
  ///
  /// For a captured verb it waits for all work enqueued on the instance so far, so launch the graph on that
  /// instance. It throws the errors found since the last call, and invalid_argument before the capture has
  /// ended.
  void wait();

  /// True if wait() would return without blocking. Never blocks.
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
    if (const detail::event_handle work = point()) execution_backend<Exec>::wait_for(exec, *work);
    return *this;
  }
  /// @}

  /// Gives up the handle and never blocks, except inside of Kokkos::finalize. The work continues, and its
  /// scratch memory is kept until it ends. Its error is thrown by the next wait() for work of the instance,
  /// or by the next() of a prefetcher of that; else Kokkos::finalize prints it. A step with bad indices
  /// stays counted. The graph of a captured verb keeps what the verb uses; the errors of its launches come
  /// with the next wait() for work of the captured instance.
  void detach();

  /// For the verbs, about their own parts.
  /// @{
  /// As wait(), for the errors of this work alone.
  void join();
  /// As detach(), without the errors: those are the whole verb's.
  void drop();
  /// As join(), then returns the oldest error of detached work of the instance; null for none.
  [[nodiscard]] std::exception_ptr hear();
  /// @}

 private:
  [[nodiscard]] detail::event_handle point() const;

  static void leave(detail::ticket_state_handle state);

  void end() noexcept;

  detail::ticket_state_handle state_;
};

}  // namespace ferry
