// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/optim/detail/require_option.hpp>
#include <ferry/runtime/ticket.hpp>

#include <memory>
#include <utility>

namespace ferry::optim {

/// The norm of gradients in flight, from grad_norm and clip_grad_norm. Move-only. The destructor waits, as
/// that of a ticket does.
class grad_total {
 public:
  /// For the verbs: `result` holds the norm once `work` has ended.
  grad_total(ticket work, std::shared_ptr<void> result)
      : result_(std::move(result)), work_(std::move(work)) {}

  /// Blocks until the norm is known and returns it: that of the gradients before they were scaled. It is
  /// infinite or NaN if a gradient is, and infinite if it exceeds the range of double itself.
  double wait() {
    work_.wait();
    return *static_cast<const double*>(result_.get());
  }

  /// True if wait() would return without blocking. Never blocks.
  [[nodiscard]] bool ready() const { return work_.ready(); }

  /// The factor that clip_grad_norm applies to the gradients: min(1, max_norm / (norm + 1e-6)); NaN for a
  /// norm that is NaN. Blocks as wait() does. Throws invalid_argument for a negative max_norm.
  [[nodiscard]] double factor(double max_norm) {
    require_not_negative("grad_total", "max_norm", max_norm);
    const double factor = max_norm / (wait() + 1e-6);
    return factor > 1.0 ? 1.0 : factor;
  }

 private:
  std::shared_ptr<void> result_;
  ticket work_;  // after the result: it waits before the memory is reused
};

}  // namespace ferry::optim
