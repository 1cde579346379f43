// SPDX-License-Identifier: Apache-2.0

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::detail {

namespace {

/// FNV-1a.
void mix_into(std::uint64_t& digest, char c) {
  digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211ull;
}

}  // namespace

call_note& call_note::add(std::string_view words) {
  for (const char c : words) {
    mix_into(digest, c);
    if (length < room) text[static_cast<std::size_t>(length)] = c;
    ++length;
  }
  return *this;
}

call_note& call_note::add_hidden_bytes(note_part part, const void* data, std::size_t bytes) {
  std::uint64_t& digest_of_part = hidden[static_cast<std::size_t>(part)];
  if (digest_of_part == 0) digest_of_part = basis;
  for (const char c : std::string_view(static_cast<const char*>(data), bytes)) mix_into(digest_of_part, c);
  return *this;
}

void call_note::show_option(double value, std::initializer_list<std::string_view> name) {
  if (option_count == most_options) return;
  shown_option& option = options[static_cast<std::size_t>(option_count++)];
  option.value = value;
  std::size_t length_of_name = 0;
  for (const std::string_view part : name)
    for (const char letter : part)
      if (length_of_name + 1 < option.name.size()) option.name[length_of_name++] = letter;
}

std::uint64_t call_note::digest_of_all() const {
  call_note sum;
  const auto add_bytes = [&](const void* data, std::size_t bytes) {
    sum.add_hidden_bytes(note_part::types, data, bytes);
  };
  add_bytes(&digest, sizeof digest);
  add_bytes(&length, sizeof length);
  add_bytes(hidden.data(), sizeof hidden);
  return sum.hidden.front();
}

bool call_note::reads_like(const call_note& note) const {
  return digest == note.digest && length == note.length && words() == note.words();
}

void failure_text::set(std::string_view message) {
  const std::size_t count = std::min(message.size(), text.size() - 1);
  std::copy_n(message.data(), count, text.data());
  text[count] = '\0';
}

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

namespace {

/// Parts of an exchange in host memory, in place of those in memory of devices.
struct staged_parts {
  tensor<std::byte, pinned_space> leaving, arrived;
  std::vector<outgoing_part> outgoing;
  std::vector<incoming_part> incoming;

  staged_parts(std::span<const outgoing_part> parts_out, std::span<const incoming_part> parts_in,
               const device_lane& lane)
      : outgoing(parts_out.begin(), parts_out.end()), incoming(parts_in.begin(), parts_in.end()) {
    std::size_t bytes_out = 0, bytes_in = 0;
    for (std::size_t r = 0; r < outgoing.size(); ++r)
      if (!repeats(parts_out, r)) bytes_out += parts_out[r].bytes;
    for (const incoming_part& part : parts_in) bytes_in += part.bytes;
    leaving = tensor<std::byte, pinned_space>("values for ranks", bytes_out);
    arrived = tensor<std::byte, pinned_space>("values of ranks", bytes_in);
    std::byte* next = leaving.data();
    for (std::size_t r = 0; r < outgoing.size(); ++r) {
      if (outgoing[r].bytes == 0) continue;
      if (repeats(parts_out, r)) {
        outgoing[r] = outgoing[r - 1];
        continue;
      }
      lane.read(next, parts_out[r].data, parts_out[r].bytes);
      outgoing[r].data = next;
      next += outgoing[r].bytes;
    }
    next = arrived.data();
    for (incoming_part& part : incoming) {
      part.data = next;
      next += part.bytes;
    }
  }

 private:
  static bool repeats(std::span<const outgoing_part> parts, std::size_t r) {
    return r != 0 && parts[r].data == parts[r - 1].data && parts[r].bytes == parts[r - 1].bytes;
  }
};

}  // namespace

void transport::exchange_devices(int rank, const call_note& note, std::span<const outgoing_part> outgoing,
                                 std::span<const incoming_part> incoming, device_lane& lane) {
  std::optional<staged_parts> staged;
  try {
    staged.emplace(outgoing, incoming, lane);
  } catch (...) {
    with_message_of(std::current_exception(), [&](const char* message) { fail(rank, note, message); });
    throw;
  }
  exchange(rank, note, staged->outgoing, staged->incoming);
  try {
    for (std::size_t r = 0; r < incoming.size(); ++r)
      if (incoming[r].bytes != 0)
        lane.take(nullptr, incoming[r].data, staged->incoming[r].data, incoming[r].bytes);
    lane.finish();
  } catch (...) {
    lane.abandon();
    with_message_of(std::current_exception(), [&](const char* message) { abort(rank, message); });
    throw;
  }
}

void transport::end_reads(int rank, const call_note& note, const char* failed,
                          std::span<const std::byte> mine, std::byte* theirs) {
  if (failed == nullptr)
    all_gather(rank, note, mine, theirs);
  else
    fail(rank, note, failed);
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
