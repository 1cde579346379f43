// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <exception>
#include <memory>
#include <span>
#include <string>

namespace ferry::detail {

const char
    the_library_is_not_linked_so_link_the_target_ferry_distributed_or_compile_src_ferry_distributed_cpp = 1;

void with_message_of(const std::exception_ptr& error, function_ref<void(const char*)> act) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    act(failure.what());
  } catch (...) {
    act("an exception that is no std::exception");
  }
}

void group_trouble::set(kind reason, function_ref<std::string()> text) noexcept {
  if (is_broken()) return;
  kind_ = reason;
  try {
    text_ = text();
  } catch (...) {
    text_.clear();  // out of memory: the type of the error has to do
  }
}

void group_trouble::clear() noexcept {
  kind_ = kind::none;
  text_.clear();
}

void group_trouble::fail() const {
  if (kind_ == kind::protocol) throw protocol_error(text_);
  if (kind_ == kind::late) throw communication_error(text_);
  throw peer_error(text_);
}

std::string text_of_abort(int rank, const char* message) {
  return "ferry::communicator: rank " + std::to_string(rank) + " failed: " + message;
}

void throw_peer_failed(int rank, const call_note& note, const failure_text& message) {
  throw peer_error("ferry::communicator: rank " + std::to_string(rank) + " failed in " +
                   std::string(note.words()) + ": " + message.c_str());
}

transport::~transport() = default;

void transport::exchange_devices(int, const call_note&, std::span<const outgoing_part>,
                                 std::span<const incoming_part>, device_lane&) {
  throw invalid_argument("ferry::communicator: its ranks can't pass on memory of devices");
}

void transport::exchange_device_memory(int, const call_note&, std::span<const outgoing_part>,
                                       std::span<const incoming_part>) {
  throw invalid_argument("ferry::communicator: its messages can't lie in memory of devices");
}

void transport::end_reads(int rank, const call_note& note, const char* failed,
                          std::span<const std::byte> mine, std::byte* theirs) {
  if (failed == nullptr)
    all_gather(rank, note, mine, theirs);
  else
    fail(rank, note, failed);
}

int transport::pass_descriptor(int, const call_note&, int, int) {
  throw invalid_argument("ferry::communicator: its ranks can't pass on file descriptors");
}

void transport::wait_before_calls(const std::shared_ptr<access_tracker>&, bool) {}

namespace {

rank_binding*& innermost_binding() { return thread_wide<rank_binding>(); }

}  // namespace

rank_binding::rank_binding(const transport* group, int rank)
    : group_(group), rank_(rank), outer_(innermost_binding()) {
  innermost_binding() = this;
}

rank_binding::~rank_binding() {
  for (rank_binding** link = &innermost_binding(); *link != nullptr; link = &(*link)->outer_)
    if (*link == this) {
      *link = outer_;
      return;
    }
}

int rank_binding::rank_in(const transport* group) {
  for (const rank_binding* binding = innermost_binding(); binding != nullptr; binding = binding->outer_)
    if (binding->group_ == group) return binding->rank_;
  return -1;
}

}  // namespace ferry::detail
