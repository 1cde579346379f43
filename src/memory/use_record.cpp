// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/use_record.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace ferry::detail {

void use_record::promise() {
  uses_.reserve(uses_.size() + promised_ + 1);
  ++promised_;
}

void use_record::note(event_handle end, instance_id who) noexcept {
  --promised_;
  const bool after_loan = lent_to_instance_ && borrower_ == who;
  std::erase_if(uses_,
                [&](const use_point& use) { return use.who == who || (after_loan && use.before_loan); });
  if (end != nullptr) uses_.push_back({std::move(end), who, false});
}

void use_record::add(event_handle end, instance_id who) {
  promise();
  note(std::move(end), who);
}

void use_record::append(const use_record& record) {
  uses_.insert(uses_.end(), record.uses_.begin(), record.uses_.end());
}

void use_record::lend_to(instance_id borrower) noexcept {
  for (use_point& use : uses_) use.before_loan = true;
  borrower_ = borrower;
  lent_to_instance_ = true;
}

bool use_record::is_only_of(const instance_id* who) const noexcept {
  return std::all_of(uses_.begin(), uses_.end(),
                     [who](const use_point& use) { return who != nullptr && use.who == *who; });
}

void use_record::drop_ended(const instance_id* who) noexcept {
  std::erase_if(uses_, [who](const use_point& use) {
    return (who == nullptr || use.who != *who) && has_ended(*use.end);
  });
}

void use_record::drop(const std::vector<event_handle>& waited) noexcept {
  std::erase_if(uses_, [&waited](const use_point& use) {
    return std::find(waited.begin(), waited.end(), use.end) != waited.end();
  });
}

void use_record::wait_ignoring_errors() noexcept {
  for (const use_point& use : uses_) try {
      use.end->wait();
    } catch (...) {
    }
  uses_.clear();
}

}  // namespace ferry::detail
