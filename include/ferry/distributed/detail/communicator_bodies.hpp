// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator.hpp>
#include <ferry/distributed/detail/rank_devices.hpp>
#include <ferry/distributed/detail/socket_transport.hpp>
#include <ferry/distributed/detail/thread_transport.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry {

namespace detail {

/// Deadlines longer than a year would overflow the clock.
inline std::chrono::nanoseconds checked_deadline(const char* what, std::chrono::nanoseconds deadline) {
  if (deadline <= std::chrono::nanoseconds(0))
    throw invalid_argument(std::string("ferry::") + what + ": the deadline must be positive");
  return std::min(deadline, std::chrono::nanoseconds(std::chrono::hours(24 * 365)));
}

}  // namespace detail

inline communicator communicator::threads(int ranks, const communicator_options& options) {
  if (ranks < 1)
    throw invalid_argument("ferry::communicator::threads: the number of ranks is " + std::to_string(ranks) +
                           ", must be >= 1");
  return communicator(std::make_shared<detail::thread_transport>(
      ranks, detail::checked_deadline("communicator::threads", options.deadline)));
}

template <class Exec>
communicator communicator::devices(const std::vector<int>& ids, const communicator_options& options) {
  static_assert(
      std::is_same_v<Exec, Kokkos::DefaultExecutionSpace>,
      "ferry: communicator::devices makes instances of Kokkos::DefaultExecutionSpace; it takes no other type.");
  if (ids.empty())
    throw invalid_argument("ferry::communicator::devices: no ids were given; each rank needs a device");
  const auto deadline = detail::checked_deadline("communicator::devices", options.deadline);
  return communicator(std::make_shared<detail::thread_transport>(
      static_cast<int>(ids.size()), deadline, std::make_unique<const detail::rank_instances<Exec>>(ids)));
}

inline communicator communicator::node(int rank, int size, const std::string& key,
                                       const communicator_options& options) {
  if (size < 1 || rank < 0 || rank >= size)
    throw invalid_argument("ferry::communicator::node: there is no rank " + std::to_string(rank) + " of " +
                           std::to_string(size));
  return communicator(std::make_shared<detail::socket_transport>(
      rank, size, key, detail::checked_deadline("communicator::node", options.deadline)));
}

inline void communicator::barrier() const {
  const int here = acting_rank();
  if (here >= 0) group_->all_gather(here, detail::call_note("barrier"), {}, nullptr);
}

inline communicator::binding::binding(std::shared_ptr<detail::transport> group, int rank)
    : group_((detail::require_own_ranks(*group), group->enter(rank), std::move(group))),
      rank_(rank),
      exceptions_(std::uncaught_exceptions()),
      here_(group_.get(), rank) {}

inline communicator::binding::~binding() {
  if (!group_->in_own_process()) return;
  if (std::uncaught_exceptions() > exceptions_) group_->abort(rank_, "an exception ended its binding");
  group_->leave(rank_, false);
}

}  // namespace ferry
