#pragma once

#include <ferry/error.hpp>
#include <ferry/runtime/ticket.hpp>

#include <exception>
#include <optional>
#include <utility>

namespace ferry {

/// The result of a verb in flight, which is only to be had once the work has ended: a ticket together with what
/// the verb writes to. Move-only. Destroyed without get(), it waits, then frees the result.
template <class Result>
class future {
 public:
  /// Of nothing: get() throws.
  future() = default;
  future(ticket work, Result result) : result_(std::move(result)), work_(std::move(work)) {}
  future(future&& other) noexcept
      : result_(std::exchange(other.result_, std::nullopt)),
        failure_(std::exchange(other.failure_, nullptr)),
        work_(std::move(other.work_)) {}
  /// Waits for the work that it stood for before.
  future& operator=(future&& other) noexcept {
    if (this == &other) return *this;
    work_ = std::move(other.work_);
    result_ = std::exchange(other.result_, std::nullopt);
    failure_ = std::exchange(other.failure_, nullptr);
    return *this;
  }
  future(const future&) = delete;
  future& operator=(const future&) = delete;
  ~future() = default;

  /// Blocks until the work has ended. Throws what ticket::wait() throws, every time it is called.
  void wait() {
    if (failure_ == nullptr) {
      try {
        work_.wait();
      } catch (...) {
        failure_ = std::current_exception();
      }
    }
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

  /// Whether wait() would return, or throw, at once. Never blocks.
  [[nodiscard]] bool ready() const { return work_.ready(); }

  /// Orders all later work of `exec` behind the verb, see ticket::then.
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

  /// Waits, and hands the result out. Throws what wait() throws; the result is then not to be had, as it is not
  /// whole. A second call throws invalid_argument.
  [[nodiscard]] Result get() {
    wait();
    if (!result_.has_value())
      throw invalid_argument(
          "ferry::future: there is no result: it was never given one, or get() or a move has handed it on");
    Result handed = std::move(*result_);
    result_.reset();
    return handed;
  }

 private:
  std::optional<Result> result_;
  std::exception_ptr failure_;
  ticket work_;  // behind the result: it waits before that is freed
};

}  // namespace ferry
