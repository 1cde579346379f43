// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/work_in_flight.hpp>

#include <vector>

namespace ferry::detail {

void work_in_flight::add(event_handle done, instance_id who) {
  promise();
  add_promised(std::move(done), who);
}

void work_in_flight::promise() {
  points_.reserve(points_.size() + promised_ + 1);
  ++promised_;
}

void work_in_flight::add_promised(event_handle done, instance_id who) noexcept {
  --promised_;
  if (done == nullptr) return;
  std::erase_if(points_,
                [who](const point& each) { return each.who == who || detail::has_ended(*each.done); });
  points_.push_back({std::move(done), who});
}

void work_in_flight::others(instance_id who, std::vector<event_handle>& to) const {
  for (const auto& each : points_)
    if (each.who != who) to.push_back(each.done);
}

void work_in_flight::all(std::vector<event_handle>& to) const {
  for (const auto& each : points_) to.push_back(each.done);
}

void work_in_flight::drop(const std::vector<event_handle>& waited) noexcept {
  std::erase_if(points_, [&waited](const point& each) {
    return std::find(waited.begin(), waited.end(), each.done) != waited.end();
  });
}

}  // namespace ferry::detail
