// SPDX-License-Identifier: Apache-2.0
#include "text_cursor.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace ferry::detail {

char text_cursor::peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }

std::string_view text_cursor::rest() const { return text_.substr(position_); }

void text_cursor::advance(std::size_t characters) { position_ += characters; }

void text_cursor::skip_space() {
  while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++position_;
}

bool text_cursor::take(char expected) {
  skip_space();
  if (failed() || at_end() || peek() != expected) return false;
  ++position_;
  return true;
}

bool text_cursor::expect(char expected) {
  return take(expected) || fail(std::string("'") + expected + "' is missing");
}

bool text_cursor::take(std::string_view word) {
  skip_space();
  if (failed() || !rest().starts_with(word)) return false;
  position_ += word.size();
  return true;
}

bool text_cursor::number(std::uint64_t& value) {
  skip_space();
  const std::size_t begin = position_;
  value = 0;
  for (; peek() >= '0' && peek() <= '9'; ++position_) {
    const auto digit = static_cast<std::uint64_t>(peek() - '0');
    if (value > (static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - digit) / 10)
      return fail("a number exceeds 63 bits");
    value = value * 10 + digit;
  }
  if (position_ == begin) return fail("a number without a sign is missing");
  return !failed() && (position_ - begin == 1 || text_[begin] != '0' || fail("a number has a leading zero"));
}

bool text_cursor::fail(std::string_view problem) {
  if (why_.empty()) why_ = std::string(problem) + " at byte " + std::to_string(position_) + " of the header";
  return false;
}

}  // namespace ferry::detail
