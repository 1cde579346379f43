// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/communicator/communicator.hpp>

#include "thread_transport.hpp"

#include <ferry/distributed/communicator/detail/rank_devices.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ferry {

namespace detail {

std::chrono::nanoseconds checked_deadline(const char* function, std::chrono::nanoseconds deadline) {
  if (deadline <= std::chrono::nanoseconds(0))
    throw invalid_argument(std::string("ferry::") + function + ": the deadline must be positive");
  return std::min(deadline, std::chrono::nanoseconds(std::chrono::hours(24 * 365)));
}

}  // namespace detail

communicator communicator::threads(int ranks, const communicator_options& options) {
  if (ranks < 1)
    throw invalid_argument("ferry::communicator::threads: the number of ranks is " + std::to_string(ranks) +
                           ", must be >= 1");
  return communicator(std::make_shared<detail::thread_transport>(
      ranks, detail::checked_deadline("communicator::threads", options.deadline)));
}

communicator communicator::on_devices(const std::vector<int>& ids, const communicator_options& options) {
  if (ids.empty())
    throw invalid_argument("ferry::communicator::devices: no ids were given; each rank needs a device");
  const auto deadline = detail::checked_deadline("communicator::devices", options.deadline);
  return communicator(std::make_shared<detail::thread_transport>(
      static_cast<int>(ids.size()), deadline, std::make_unique<const detail::rank_devices>(ids)));
}

int communicator::rank() const {
  const int acting = acting_rank();
  return size() == 1 ? 0 : acting;
}

device communicator::device(int rank) const {
  require_rank(rank);
  return group_->devices() == nullptr ? ferry::device{} : group_->devices()->of(rank);
}

void communicator::require_rank(int rank) const {
  if (rank < 0 || rank >= size())
    throw out_of_range("ferry::communicator: there is no rank " + std::to_string(rank) + " of " +
                       std::to_string(size()));
}

std::vector<std::byte> communicator::gather_bytes(int rank, std::span<const std::byte> part) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size()) * part.size());
  detail::call_note note("all_gather of");
  group_->all_gather(rank, note.add_number(part.size()).add(" bytes"), part, bytes.data());
  return bytes;
}

void communicator::barrier() const {
  const int rank = acting_rank();
  if (rank >= 0) group_->all_gather(rank, detail::call_note("barrier"), {}, nullptr);
}

communicator::binding::binding(std::shared_ptr<detail::transport> group, int rank)
    : group_((detail::require_own_ranks(*group), group->enter(rank), std::move(group))),
      rank_(rank),
      exceptions_(std::uncaught_exceptions()),
      binding_(group_.get(), rank) {}

communicator::binding::~binding() {
  if (!group_->in_own_process()) return;
  if (std::uncaught_exceptions() > exceptions_) group_->abort(rank_, "an exception ended its binding");
  group_->leave(rank_, false);
}

}  // namespace ferry
