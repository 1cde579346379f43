// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/communicator/detail/run_ranks.hpp>

#include "../../runtime/worker_pool.hpp"

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace ferry::detail {

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
