// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/event.hpp>

#include <cstddef>

namespace ferry::detail {

/// A rank's end of an exchange of device memory between threads of one process. The sender publishes an
/// event: the work that makes its parts. Each receiver copies on its own device after that event, and waits
/// for its copies before it says that it has read. So the sender, which stays in the call until all have
/// read, keeps its memory for as long as a copy uses it, also if an exception ends the copies of a rank.
class device_lane {
 public:
  device_lane() = default;
  device_lane(const device_lane&) = delete;
  device_lane& operator=(const device_lane&) = delete;
  virtual ~device_lane() = default;

  /// The work enqueued so far makes what this rank sends. Before the ranks meet, by the rank's thread.
  virtual void publish() = 0;
  /// The end of that work, null if it has ended, and the device of what it makes. By any thread.
  /// @{
  [[nodiscard]] virtual const event_handle& published() const = 0;
  [[nodiscard]] virtual int device() const = 0;
  /// @}
  /// Begins to copy a part of a sender to memory of this rank; `sender` is null if it is host memory.
  virtual void take(const device_lane* sender, std::byte* target, const std::byte* source,
                    std::size_t bytes) = 0;
  /// Copies a part of this rank to host memory, for a receiver without a lane. By any thread. Blocks.
  virtual void read(std::byte* target, const std::byte* source, std::size_t bytes) const = 0;
  /// Waits for the copies that this rank began. abandon() after an exception, whose error it leaves alone.
  /// @{
  virtual void finish() = 0;
  virtual void abandon() noexcept = 0;
  /// @}
};

}  // namespace ferry::detail
