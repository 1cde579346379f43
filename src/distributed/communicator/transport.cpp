// SPDX-License-Identifier: Apache-2.0

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

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

namespace {

/// Names of the parts of a note, for messages.
constexpr std::array<std::string_view, note_parts> note_part_names = {
    "policies or element types", "the state", "the options of the rule or its transforms",
    "the values of arguments", "what is saved or loaded"};

/// " (lr is 0.1 on rank 0 and 1 on rank 2)": the first option that differs; empty if the notes do not show it.
/// Options of a rule or transform that ferry does not know are numbered in the order of their declaration.
std::string option_difference(std::span<const call_note* const> calls) {
  const auto& first = *calls.front();
  for (std::size_t option = 0; option < static_cast<std::size_t>(first.option_count); ++option)
    for (std::size_t rank = 1; rank < calls.size(); ++rank) {
      const auto& note = *calls[rank];
      const shown_option &value = note.options[option], &reference = first.options[option];
      if (option >= note.option_count || value.value == reference.value) continue;
      std::array<char, 64> number{};
      std::snprintf(number.data(), number.size(), "option %zu in the order of declaration", option + 1);
      std::array<char, 240> text{};
      std::snprintf(text.data(), text.size(), " (%s is %.6g on rank 0 and %.6g on rank %zu)",
                    reference.name[0] != '\0' ? reference.name.data() : number.data(), reference.value,
                    value.value, rank);
      return text.data();
    }
  return {};
}

}  // namespace

std::string hidden_difference(std::span<const call_note* const> calls) {
  std::string text;
  for (std::size_t part = 0; part < note_parts; ++part)
    for (const call_note* const call : calls)
      if (call->hidden[part] != calls.front()->hidden[part]) {
        text += (text.empty() ? "; they differ in " : ", and in ") + std::string(note_part_names[part]);
        if (part == static_cast<std::size_t>(note_part::options)) text += option_difference(calls);
        break;
      }
  return text;
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
