// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::detail {

/// A position in the text of a file's header. The first failure is kept; all functions return false after it.
class text_cursor {
 public:
  explicit text_cursor(std::string_view text) : text_(text) {}

  [[nodiscard]] bool at_end() const { return position_ == text_.size(); }
  [[nodiscard]] char peek() const;
  [[nodiscard]] std::size_t place() const { return position_; }
  [[nodiscard]] std::string_view rest() const;
  void advance(std::size_t characters = 1);
  void skip_space();

  /// True if the next character after white space is `expected`, which is then taken.
  bool take(char expected);
  bool expect(char expected);
  /// Takes a word, "True" say.
  bool take(std::string_view word);

  /// A number without a sign, of at most 63 bits.
  bool number(std::uint64_t& value);

  bool fail(std::string_view problem);
  [[nodiscard]] bool failed() const { return !why_.empty(); }
  /// The first failure; empty if there was none.
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  std::string_view text_;
  std::size_t position_ = 0;
  std::string why_;
};

}  // namespace ferry::detail
