// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/use_record.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace ferry::detail {

void use_record::promise() {
  points_.reserve(points_.size() + promised_ + 1);
  ++promised_;
}

void use_record::note(event_handle done, instance_id who) noexcept {
  --promised_;
  const bool after_loan = lent_to_instance_ && borrower_ == who;
  std::erase_if(points_,
                [&](const point& each) { return each.who == who || (after_loan && each.before_loan); });
  if (done != nullptr) points_.push_back({std::move(done), who, false});
}

void use_record::add(event_handle done, instance_id who) {
  promise();
  note(std::move(done), who);
}

void use_record::lend_to(instance_id borrower) noexcept {
  for (point& each : points_) each.before_loan = true;
  borrower_ = borrower;
  lent_to_instance_ = true;
}

bool use_record::is_only_of(const instance_id* who) const noexcept {
  return std::all_of(points_.begin(), points_.end(),
                     [who](const point& each) { return who != nullptr && each.who == *who; });
}

void use_record::drop_ended(const instance_id* who) noexcept {
  std::erase_if(points_, [who](const point& each) {
    return (who == nullptr || each.who != *who) && has_ended(*each.done);
  });
}

void use_record::drop(const std::vector<event_handle>& waited) noexcept {
  std::erase_if(points_, [&waited](const point& each) {
    return std::find(waited.begin(), waited.end(), each.done) != waited.end();
  });
}

void use_record::wait_ignoring_errors() noexcept {
  for (const point& each : points_) try {
      each.done->wait();
    } catch (...) {
    }
  points_.clear();
}

}  // namespace ferry::detail
