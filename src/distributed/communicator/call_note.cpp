// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/communicator/detail/call_note.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
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

void failure_text::set(std::string_view message) {
  const std::size_t count = std::min(message.size(), text.size() - 1);
  std::copy_n(message.data(), count, text.data());
  text[count] = '\0';
}

}  // namespace ferry::detail
