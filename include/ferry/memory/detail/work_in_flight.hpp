// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/dynamic_array.hpp>
#include <ferry/memory/detail/event.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ferry::detail {

/// The enqueued work that uses an object: the latest point per instance, because the work of an instance runs
/// in order. Adding work drops the points that have ended, so there is at most one point per active instance.
/// Not thread-safe: the owner locks.
class work_in_flight {
 public:
  /// Adds the work of instance `who` until `done`; null: the work has ended.
  FERRY_LAZY void add(event_handle done, instance_id who);

  /// Reserves memory for a point before its work is enqueued, so that add_promised() can't fail. withdraw()
  /// cancels the reservation.
  FERRY_LAZY void promise();
  void withdraw() noexcept { --promised_; }
  FERRY_LAZY void add_promised(event_handle done, instance_id who) noexcept;

  /// Appends the points of other instances than `who`.
  FERRY_LAZY void others(instance_id who, dynamic_array<event_handle>& to) const;
  /// Appends all points.
  FERRY_LAZY void all(dynamic_array<event_handle>& to) const;
  /// Drops points that were waited for.
  FERRY_LAZY void drop(const dynamic_array<event_handle>& waited) noexcept;

 private:
  struct point {
    event_handle done;
    instance_id who;
  };

  dynamic_array<point> points_;
  std::size_t promised_ = 0;
};

#ifdef FERRY_RUNTIME_BODIES

FERRY_LAZY void work_in_flight::add(event_handle done, instance_id who) {
  promise();
  add_promised(std::move(done), who);
}

FERRY_LAZY void work_in_flight::promise() {
  points_.reserve(points_.size() + promised_ + 1);
  ++promised_;
}

FERRY_LAZY void work_in_flight::add_promised(event_handle done, instance_id who) noexcept {
  --promised_;
  if (done == nullptr) return;
  points_.erase_if([who](const point& each) { return each.who == who || detail::has_ended(*each.done); });
  points_.push_reserved({std::move(done), who});
}

FERRY_LAZY void work_in_flight::others(instance_id who, dynamic_array<event_handle>& to) const {
  for (const auto& each : points_)
    if (each.who != who) to.push_back(each.done);
}

FERRY_LAZY void work_in_flight::all(dynamic_array<event_handle>& to) const {
  for (const auto& each : points_) to.push_back(each.done);
}

FERRY_LAZY void work_in_flight::drop(const dynamic_array<event_handle>& waited) noexcept {
  points_.erase_if([&waited](const point& each) {
    return std::find(waited.begin(), waited.end(), each.done) != waited.end();
  });
}

#endif

}  // namespace ferry::detail
