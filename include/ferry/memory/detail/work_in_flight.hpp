// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The enqueued work that uses an object: the latest point per instance, because the work of an instance runs
/// in order. Adding work drops the points that have ended, so there is at most one point per active instance.
/// Not thread-safe: the owner locks.
class work_in_flight {
 public:
  /// Adds the work of instance `who` until `done`; null: the work has ended.
  void add(event_handle done, instance_id who);

  /// Reserves memory for a point before its work is enqueued, so that add_promised() can't fail. withdraw()
  /// cancels the reservation.
  void promise();
  void withdraw() noexcept { --promised_; }
  void add_promised(event_handle done, instance_id who) noexcept;

  /// Appends the points of other instances than `who`.
  void others(instance_id who, std::vector<event_handle>& to) const;
  /// Appends all points.
  void all(std::vector<event_handle>& to) const;
  /// Drops points that were waited for.
  void drop(const std::vector<event_handle>& waited) noexcept;

 private:
  struct point {
    event_handle done;
    instance_id who;
  };

  std::vector<point> points_;
  std::size_t promised_ = 0;
};

}  // namespace ferry::detail
