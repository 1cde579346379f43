// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator.hpp>
#include <ferry/distributed/detail/thread_transport.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace ferry {

inline communicator communicator::threads(int ranks, const communicator_options& options) {
  if (ranks < 1)
    throw invalid_argument("ferry::communicator::threads: the number of ranks is " + std::to_string(ranks) +
                           ", must be >= 1");
  if (options.deadline <= std::chrono::nanoseconds(0))
    throw invalid_argument("ferry::communicator::threads: the deadline must be positive");
  // Longer ones would overflow the clock.
  const auto most = std::chrono::nanoseconds(std::chrono::hours(24 * 365));
  return communicator(std::make_shared<detail::thread_transport>(ranks, std::min(options.deadline, most)));
}

inline void communicator::barrier() const {
  const int here = rank();
  if (here >= 0) group_->all_gather(here, detail::call_note("barrier"), {}, nullptr);
}

inline communicator::binding::binding(std::shared_ptr<detail::transport> group, int rank)
    : group_((group->enter(rank), std::move(group))),
      rank_(rank),
      exceptions_(std::uncaught_exceptions()),
      here_(group_.get(), rank) {}

inline communicator::binding::~binding() {
  if (std::uncaught_exceptions() > exceptions_) group_->abort(rank_, "an exception ended its binding");
  group_->leave(rank_, false);
}

}  // namespace ferry
