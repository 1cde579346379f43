// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace ferry::detail {

/// What a rank calls: the verb, the table's label and number, and all arguments that must agree between the
/// ranks. Of fixed size, so that a transport sends it along and a rank that is out of memory can still say
/// what it called. A long text is cut; the digest covers all of it.
struct call_note {
  static constexpr std::size_t room = 104;

  std::array<char, room> text{};
  std::uint64_t digest = 14695981039346656037ull;
  std::uint64_t length = 0;

  call_note() = default;
  explicit call_note(std::string_view words) { add(words); }

  /// Appends words. FNV-1a.
  call_note& add(std::string_view words) {
    for (const char c : words) {
      digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211ull;
      if (length < room) text[static_cast<std::size_t>(length)] = c;
      ++length;
    }
    return *this;
  }
  template <class Number>
  call_note& add_number(Number number) {
    return add(" ").add(std::to_string(number));
  }
  /// A number that the text does not show.
  template <class Number>
  call_note& add_hidden(const Number& number) {
    char bytes[sizeof(Number)];
    std::memcpy(bytes, &number, sizeof number);
    for (const char c : bytes) digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    return *this;
  }

  [[nodiscard]] std::string_view words() const {
    return {text.data(), static_cast<std::size_t>(std::min<std::uint64_t>(length, room))};
  }
  friend bool operator==(const call_note& a, const call_note& b) {
    return a.digest == b.digest && a.length == b.length && a.words() == b.words();
  }
};

/// What a failing rank said, of fixed size.
struct failure_text {
  std::array<char, 400> text{};

  void set(std::string_view what) {
    const std::size_t count = std::min(what.size(), text.size() - 1);
    std::copy_n(what.data(), count, text.data());
    text[count] = '\0';
  }
  [[nodiscard]] const char* c_str() const { return text.data(); }
};

}  // namespace ferry::detail
