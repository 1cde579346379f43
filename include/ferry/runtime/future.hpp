// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/runtime/ticket.hpp>

#include <concepts>
#include <exception>
#include <optional>
#include <utility>

namespace ferry {

/// The result of a verb in flight, available once the work has ended: a ticket together with the array that
/// the verb writes. Move-only. Without get(), the destructor waits, then frees the result.
template <class Result>
class future {
 public:
  /// A future of nothing: get() throws.
  future() = default;
  /// The future of `result`, which is complete once `work` has ended.
  future(ticket work, Result result) : result_(std::move(result)), work_(std::move(work)) {}
  /// Takes the work and the result of `source`, whose get() then throws.
  future(future&& source) noexcept
      : result_(std::exchange(source.result_, std::nullopt)),
        failure_(std::exchange(source.failure_, nullptr)),
        work_(std::move(source.work_)) {}
  /// Waits for the previous work, then takes that of `source`.
  future& operator=(future&& source) noexcept {
    if (this == &source) return *this;
    work_ = std::move(source.work_);
    result_ = std::exchange(source.result_, std::nullopt);
    failure_ = std::exchange(source.failure_, nullptr);
    return *this;
  }
  future(const future&) = delete;
  future& operator=(const future&) = delete;
  ~future() = default;

  /// Blocks until the work has ended. Throws what ticket::wait() throws; the error of the verb at every call,
  /// one of detached work once.
  void wait() {
    std::exception_ptr earlier;
    if (failure_ == nullptr) try {
        earlier = work_.hear();
      } catch (...) {
        failure_ = std::current_exception();
      }
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (earlier != nullptr) std::rethrow_exception(earlier);
  }

  /// True if wait() would return or throw without blocking. Never blocks.
  [[nodiscard]] bool ready() const { return work_.ready(); }

  /// Orders all later work of `exec` after the verb, see ticket::then.
  /// @{
  template <class Exec>
  future& then(const Exec& exec) {
    work_.then(exec);
    return *this;
  }
  template <class Exec>
  const future& then(const Exec& exec) const {
    work_.then(exec);
    return *this;
  }
  /// @}

  /// Blocks until the work has ended, then returns the result. Throws what wait() throws; an incomplete
  /// result is never returned. A second call throws invalid_argument.
  [[nodiscard]] Result get() {
    wait();
    if (!result_.has_value())
      throw invalid_argument(
          "ferry::future: there is no result: it was never given one, or get() or a move has handed it on");
    Result handed = std::move(*result_);
    result_.reset();
    return handed;
  }

  /// Refuses a future in place of its result. Does not compile.
  template <std::same_as<Result> Expected>
  operator Expected() {
    static_assert(
        sizeof(Expected) == 0,
        "ferry: get() of a future returns its result when the work has ended: auto copied = clone(exec, table).get().");
    return get();
  }

 private:
  std::optional<Result> result_;
  std::exception_ptr failure_;
  ticket work_;  // after the result: it waits before the result is freed
};

}  // namespace ferry
