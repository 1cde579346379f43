// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/ticket.hpp>

#include <ferry/memory/detail/tools.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace ferry::detail {

const std::string& ticket_state::label(std::initializer_list<std::string_view> parts) {
  if (labels_used == labels.size()) labels.push_back(std::make_unique<std::string>());
  std::string& text = *labels[labels_used];
  text.clear();
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text.append("::");
    text.append(part);
  }
  ++labels_used;
  return text;
}

const std::vector<event_handle>& ticket_state::earlier_work(const access_tracker& accesses, bool writes,
                                                            instance_id instance) {
  earlier.clear();
  accesses.append_earlier(writes, instance, earlier);
  return earlier;
}

void ticket_state::add_use(std::shared_ptr<void> owner, used_object* object, bool writes) {
  uses.push_back({std::move(owner), nullptr, writes, false});
  if (object == nullptr) return;
  object->promise();
  uses.back().object = object;
}

void ticket_state::add_use(const std::shared_ptr<access_tracker>& accesses, bool writes) {
  add_use(accesses, accesses.get(), writes);
  uses.back().until_recorded = true;
}

void ticket_state::record_end(const event_handle& end, instance_id instance) noexcept {
  for (used_resource& use : uses)
    if (used_object* const object = std::exchange(use.object, nullptr))
      object->record(use.writes, end, instance);
  std::erase_if(uses, [](const used_resource& use) { return use.until_recorded; });
  earlier.clear();
}

void ticket_state::withdraw() noexcept {
  for (used_resource& use : uses)
    if (used_object* const object = std::exchange(use.object, nullptr)) object->withdraw();
}

bool ticket_state::is_raised() const {
  return (sources.device != nullptr && sources.device->is_raised()) ||
         (sources.plan != nullptr && sources.plan->is_raised());
}

bool ticket_state::can_be_raised() const {
  return sources.device.use_count() > 1 || sources.plan.use_count() > 1;
}

bool ticket_state::has_outlived_kokkos() const {
  return pool != nullptr && keeper.expired() && !Kokkos::is_initialized();
}

std::exception_ptr ticket_state::finding() noexcept {
  try {
    return find_error == nullptr ? nullptr : find_error(*this);
  } catch (...) {  // the memory for its message is lacking, or the device failed: an error all the same
    return std::current_exception();
  }
}

void ticket_state::take_nothing_back() noexcept {
  const bool skips = ends.skip != nullptr;
  ends = {};
  if (skips) ends.skip = [](void*, bool) {};
}

void ticket_state::clear() noexcept {
  completion = nullptr;
  resources.clear();
  uses.clear();
  find_error = nullptr;
  sources = {};
  by_host = {};
  ends = {};
  give_up = nullptr;
  keeper.reset();
  mark = nullptr;
  stream = nullptr;
  earlier.clear();
  labels_used = 0;
  next = nullptr;
}

ticket_state_handle take_ticket_state(const std::shared_ptr<ticket_state_pool>& pool) {
  ticket_state_handle state(pool->take_or_make(1, [] { return std::make_unique<ticket_state>(); }).release());
  state->pool = pool;
  state->process = process_mark();
  return state;
}

void ticket_state_return::operator()(ticket_state* ended) const noexcept {
  std::unique_ptr<ticket_state> back(ended);
  back->clear();
  if (const auto pool = std::move(back->pool)) pool->put(std::move(back));
}

}  // namespace ferry::detail

namespace ferry {

void ticket::wait() {
  if (const auto earlier = hear()) std::rethrow_exception(earlier);
}

void ticket::join() {
  if (state_ == nullptr) return;
  const detail::tool_region waiting("ferry::wait::", state_->sources.verb);
  if (state_->mark) {
    if (const auto point = state_->mark()) point->wait();
    if (state_->find_error == nullptr) return;
    if (const auto finding = state_->find_error(*state_)) std::rethrow_exception(finding);
    return;
  }
  const auto state = std::move(state_);
  if (state->completion != nullptr) state->completion->wait();
  if (const auto finding = state->finding()) {
    if (state->ends.undo != nullptr) state->ends.undo(state->ends.owner.get());
    std::rethrow_exception(finding);
  }
}

std::exception_ptr ticket::hear() {
  if (state_ == nullptr) return nullptr;
  const auto owner = state_->keeper.lock();
  const auto who = state_->who;
  const auto stream = state_->stream;
  join();
  return owner == nullptr ? nullptr : owner->take_finding(who, stream);
}

bool ticket::ready() const {
  if (state_ == nullptr) return true;
  const detail::event_handle completion = point();
  return completion == nullptr || completion->ready();
}

void ticket::detach() {
  if (state_ == nullptr) return;
  auto state = std::move(state_);
  if (state->give_up != nullptr)
    state->give_up(*state);
  else
    leave(std::move(state));
}

void ticket::drop() {
  if (state_ == nullptr) return;
  auto state = std::move(state_);
  if (state->mark) return;
  state->find_error = nullptr;
  leave(std::move(state));
}

void ticket::leave(detail::ticket_state_handle state) {
  if (!state->process.is_here()) {
    detail::process_identity::get().abandon(state.release());  // its event and its pool are the parent's
    return;
  }
  const bool checks = state->find_error != nullptr;
  if (state->mark) {  // the graph owns what its kernels use
    const auto owner = state->keeper.lock();
    if (!checks || owner == nullptr) return;
    state->resources.clear();
    state->uses.clear();
    state->take_nothing_back();
    return owner->keep(std::move(state));
  }
  const bool has_ended = state->completion == nullptr || detail::has_ended(*state->completion);
  if (!checks && (has_ended || state->resources.empty())) return;
  // Memory with a record of its uses is returned at once, also a plan's.
  state->uses.clear();
  state->earlier.clear();
  state->take_nothing_back();
  if (!checks) state->sources = {};
  const auto keeper = state->keeper.lock();
  if (!has_ended && keeper != nullptr) return keeper->keep(std::move(state));
  // In a finalize hook, after the engine was destroyed: waits.
  if (!has_ended && !state->has_outlived_kokkos()) state->completion->wait();
  const auto finding = state->finding();
  if (finding == nullptr) return;
  if (keeper != nullptr)
    keeper->add_finding(state->who, finding);
  else
    detail::print_unheard(finding);
}

detail::event_handle ticket::point() const { return state_->mark ? state_->mark() : state_->completion; }

void ticket::end() noexcept {
  if (state_ == nullptr) return;
  if (!state_->process.is_here()) {
    detail::process_identity::get().abandon(state_.release());
    return;
  }
  if (state_->mark) return leave(std::move(state_));
  if (state_->has_outlived_kokkos()) state_ = nullptr;
  try {
    join();
  } catch (...) {
    detail::print_unheard(std::current_exception());
  }
}

}  // namespace ferry
