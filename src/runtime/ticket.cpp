// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/ticket.hpp>

#include <ferry/memory/detail/tools.hpp>

namespace ferry {

void ticket::wait() {
  if (const auto earlier = hear()) std::rethrow_exception(earlier);
}

void ticket::join() {
  if (state_ == nullptr) return;
  const detail::tool_region waiting("ferry::wait::", state_->sources.verb);
  if (state_->mark) {
    if (const auto now = state_->mark()) now->wait();
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
  const auto home = state_->keeper.lock();
  const auto who = state_->who;
  const auto stream = state_->stream;
  join();
  return home == nullptr ? nullptr : home->take_finding(who, stream);
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
    const auto home = state->keeper.lock();
    if (!checks || home == nullptr) return;
    state->resources.clear();
    state->uses.clear();
    state->take_nothing_back();
    return home->keep(std::move(state));
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
