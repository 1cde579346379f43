// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ferry {

/// Times of the stages of an epoch. The stages work at the same time, so their times are compared, not added:
/// the slowest one sets the rate. Times in seconds, of the batches of this rank.
struct epoch_times {
  std::int64_t epoch = 0;    ///< number of the epoch
  std::int64_t batches = 0;  ///< batches that next() has returned
  std::int64_t samples = 0;  ///< their samples
  std::int64_t bytes = 0;    ///< bytes that travelled to the device
  double load = 0.0;         ///< the source's work, divided by the number of workers
  double transfer = 0.0;     ///< during which a batch travelled; 0 on a host backend
  /// From a batch to the end of the user's work on it. On a device this includes the work enqueued on the
  /// instance, but not the time that it queued after the step before.
  double step = 0.0;
  double wait = 0.0;  ///< that next() waited for a batch
  double wall = 0.0;  ///< from the epoch's first call of next() to its last one so far

  /// The stage that sets the rate: "load", "transfer" or "step".
  [[nodiscard]] std::string_view bottleneck() const;
};

/// The epochs as a table, a line each.
[[nodiscard]] std::string to_string(std::span<const epoch_times> epochs);

}  // namespace ferry
