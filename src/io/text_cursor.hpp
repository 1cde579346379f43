// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace ferry::detail {

/// A position in the text of a file's header. The first failure is kept; all functions return false after it.
template <class Dependent>
class basic_text_cursor {
 public:
  explicit basic_text_cursor(std::string_view text) : text_(text) {}

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] std::size_t place() const { return at_; }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  void advance(std::size_t characters = 1) { at_ += characters; }
  void skip_space() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
  }

  /// Whether the next character after white space is `wanted`, which is then taken.
  bool take(char wanted) {
    skip_space();
    if (failed() || at_end() || peek() != wanted) return false;
    ++at_;
    return true;
  }
  bool expect(char wanted) { return take(wanted) || fail(std::string("'") + wanted + "' is missing"); }
  /// Takes a word, "True" say.
  bool take(std::string_view word) {
    skip_space();
    if (failed() || !rest().starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  /// A number without a sign, of at most 63 bits.
  bool number(std::uint64_t& value) {
    skip_space();
    const std::size_t begin = at_;
    value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      const auto digit = static_cast<std::uint64_t>(peek() - '0');
      if (value > (static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - digit) / 10)
        return fail("a number exceeds 63 bits");
      value = value * 10 + digit;
    }
    if (at_ == begin) return fail("a number without a sign is missing");
    return !failed() && (at_ - begin == 1 || text_[begin] != '0' || fail("a number has a leading zero"));
  }

  bool fail(std::string_view what) {
    if (why_.empty()) why_ = std::string(what) + " at byte " + std::to_string(at_) + " of the header";
    return false;
  }
  [[nodiscard]] bool failed() const { return !why_.empty(); }
  /// The first failure; empty where there was none.
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::string why_;
};
using text_cursor = basic_text_cursor<void>;

}  // namespace ferry::detail
