// SPDX-License-Identifier: Apache-2.0

#include "../../../backends/enabled.hpp"
#include "../../runtime/worker_pool.hpp"

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ferry::detail {

namespace {

void require_rank_device(int id) {
  using backend = execution_backend<rank_devices::exec_space>;
  const int count = backend::device_count();
  if (id >= 0 && id < count) return;
  std::string known;
  for (int device = 0; device < count; ++device)
    known +=
        (device == 0 ? "" : ", ") + std::to_string(device) + " (" + backend::summary_of(device).name + ")";
  throw invalid_argument("ferry::communicator::devices: there is no device " + std::to_string(id) +
                         "; ferry::devices() lists " + (known.empty() ? "none" : known));
}

}  // namespace

rank_devices::rank_devices(const std::vector<int>& ids) : ids_(ids) {
  for (const int id : ids_) require_rank_device(id);
  for (const int id : ids_) instances_.push_back(device_instance<exec_space>::on(id));
}

rank_devices::~rank_devices() = default;

device rank_devices::of(int rank) const { return {ids_.at(static_cast<std::size_t>(rank))}; }

rank_devices::exec_space rank_devices::instance(int rank) const {
  return instances_.at(static_cast<std::size_t>(rank))->get();
}

void require_own_ranks(const transport& group) {
  if (group.size() > 1 && !group.in_own_process())
    refuse_child("communicator", "made the communicator", "make the communicator after the fork");
}

int acting_rank(const transport& group) {
  require_own_ranks(group);
  const int bound = rank_binding::rank_in(&group);
  if (bound >= 0) return bound;
  if (group.local_count() == 1 && group.size() > 1) return group.first_local();
  if (group.is_occupied())
    throw invalid_argument(
        "ferry::communicator: threads act for ranks of this group, but this thread is none of them; call communicator::bind, or work inside of communicator::run");
  if (group.local_count() == group.size()) return -1;
  throw invalid_argument(
      "ferry::communicator: this process holds several of the ranks; call communicator::bind, or work inside of communicator::run");
}

namespace {

/// True if an exception only tells of what happened to another rank.
bool is_consequence(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const peer_error&) {
    return true;
  } catch (const communication_error&) {
    return true;
  } catch (...) {
    return false;
  }
}

void abort_group(transport& group, int rank, const std::exception_ptr& error) noexcept {
  if (!group.in_own_process()) return;
  with_message_of(error, [&](const char* message) { group.abort(rank, message); });
}

}  // namespace

void run_ranks(transport& group, function_ref<void(int)> function) {
  require_own_ranks(group);
  const int first = group.first_local(), count = group.local_count();
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  group.recover();  // from a binding that an exception ended
  int entered = 0;
  try {
    for (; entered < count; ++entered) group.enter(first + entered);
  } catch (...) {
    while (entered-- > 0) group.leave(first + entered, false);
    throw;
  }
  const auto act = [&](int place) {
    const int rank = first + place;
    {
      const rank_binding binding(&group, rank);
      try {
        function(rank);
      } catch (...) {
        errors[static_cast<std::size_t>(place)] = std::current_exception();
        abort_group(group, rank, std::current_exception());
      }
    }
    group.leave(rank, true);
  };
  std::exception_ptr lacking;
  int started = 1;
  try {
    const signals_elsewhere quiet;
    for (; started < count; ++started)
      threads.emplace_back([&act, place = started, where = processor_set::of_process()] {
        where.take();
        act(place);
      });
  } catch (...) {  // no more threads: the ranks that have begun must not wait for the others
    lacking = std::current_exception();
    for (int place = started; place < count; ++place) {
      abort_group(group, first + place, lacking);
      group.leave(first + place, true);
    }
  }
  if (lacking == nullptr)
    act(0);
  else
    group.leave(first, true);
  for (std::thread& thread : threads) thread.join();
  group.recover();
  if (lacking != nullptr) std::rethrow_exception(lacking);
  for (const bool any : {false, true})
    for (const std::exception_ptr& error : errors)
      if (error != nullptr && (any || !is_consequence(error))) std::rethrow_exception(error);
}

}  // namespace ferry::detail

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
  return communicator(detail::make_thread_transport(
      ranks, detail::checked_deadline("communicator::threads", options.deadline), nullptr));
}

communicator communicator::on_devices(const std::vector<int>& ids, const communicator_options& options) {
  if (ids.empty())
    throw invalid_argument("ferry::communicator::devices: no ids were given; each rank needs a device");
  const auto deadline = detail::checked_deadline("communicator::devices", options.deadline);
  return communicator(detail::make_thread_transport(static_cast<int>(ids.size()), deadline,
                                                    std::make_unique<const detail::rank_devices>(ids)));
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

namespace ferry::detail {

collective::collective(const communicator& comm, const call_note& note)
    : group_(comm.group()), rank_(comm.acting_rank()), note_(note) {}

void collective::all_gather_bytes(std::span<const std::byte> part, std::byte* parts) {
  phase([&](const call_note& note) { group_->all_gather(rank_, note, part, parts); });
}

void collective::agree() {
  if (!is_whole()) agree_on_bytes({}, nullptr);
}

void collective::agree_on_bytes(std::span<const std::byte> mine, std::byte* theirs) {
  phase([&](const call_note& note) {
    if (reads_)
      group_->end_reads(rank_, note, nullptr, mine, theirs);
    else
      group_->all_gather(rank_, note, mine, theirs);
  });
}

std::uint64_t collective::next_number() {
  std::uint64_t number = 0;
  for (int r = first(); r < last(); ++r) number = group_->next_number(r);
  return number;
}

void collective::exchange(std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming,
                          device_lane* lane) {
  phase([&](const call_note& note) { group_->exchange(rank_, note, outgoing, incoming, lane); });
}

void collective::phase(function_ref<void(const call_note&)> act) {
  const call_note note = call_note(note_).add(", exchange").add_number(phases_++);
  open_ = false;
  act(note);
  open_ = true;
}

void collective::report_failure() noexcept {
  if (!open_ || is_whole()) return;
  open_ = false;
  try {
    with_message_of(std::current_exception(), [this](const char* message) {
      const call_note note = call_note(note_).add(", exchange").add_number(phases_);
      if (reads_)
        group_->end_reads(rank_, note, message, {}, nullptr);
      else
        group_->fail(rank_, note, message);
    });
  } catch (...) {  // the group is broken, so the others know
  }
}

}  // namespace ferry::detail
