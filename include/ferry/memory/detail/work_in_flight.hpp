#pragma once

#include <ferry/memory/detail/event.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace ferry {

/// The enqueued work that uses something: the latest point of each instance, since an instance does its work
/// in order. What has ended is dropped when work is added, so this holds no more points than there are
/// instances at work. Not thread-safe: its owners lock.
class work_in_flight {
 public:
  /// The work of instance `who` until `done`; null has already ended.
  void add(event_handle done, instance_id who) {
    promise();
    add_promised(std::move(done), who);
  }

  /// Makes room for a point that add_promised() will bring: taken before work is enqueued, so that noting the
  /// work can't fail afterwards. withdraw() gives the room back.
  void promise() {
    points_.reserve(points_.size() + promised_ + 1);
    ++promised_;
  }
  void withdraw() noexcept { --promised_; }
  void add_promised(event_handle done, instance_id who) noexcept {
    --promised_;
    if (done == nullptr) return;
    std::erase_if(points_,
                  [who](const point& each) { return each.who == who || detail::has_ended(*each.done); });
    points_.push_back({std::move(done), who});
  }

  /// Appends the points that work of instance `who` does not come after by itself.
  void others(instance_id who, std::vector<event_handle>& to) const {
    for (const auto& each : points_)
      if (each.who != who) to.push_back(each.done);
  }
  /// Appends all points.
  void all(std::vector<event_handle>& to) const {
    for (const auto& each : points_) to.push_back(each.done);
  }
  /// Drops points that somebody has waited for.
  void drop(const std::vector<event_handle>& waited) noexcept {
    std::erase_if(points_, [&waited](const point& each) {
      return std::find(waited.begin(), waited.end(), each.done) != waited.end();
    });
  }

 private:
  struct point {
    event_handle done;
    instance_id who;
  };

  std::vector<point> points_;
  std::size_t promised_ = 0;
};

}  // namespace ferry
