// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ferry::detail {

/// A text or a whole number as a piece of a message.
class text_piece {
 public:
  text_piece(const char* text) noexcept : text_(text) {}
  text_piece(std::string_view text) noexcept : text_(text) {}
  text_piece(const std::string& text) noexcept : text_(text) {}
  text_piece(std::unsigned_integral auto number) noexcept : number_(number), is_number_(true) {}
  text_piece(std::signed_integral auto number) noexcept
      : number_(static_cast<unsigned long long>(number)), is_number_(true), is_negative_(number < 0) {}

  /// Appends the piece.
  FERRY_LAZY [[gnu::cold]] void append_to(std::string& text) const;

 private:
  std::string_view text_;
  unsigned long long number_ = 0;
  bool is_number_ = false;
  bool is_negative_ = false;
};

/// The pieces of a message, one after the other. A chain of additions of strings does the same, with several
/// times the code.
FERRY_LAZY [[gnu::cold]] std::string joined(std::initializer_list<text_piece> pieces);

#ifdef FERRY_RUNTIME_BODIES

FERRY_LAZY void text_piece::append_to(std::string& text) const {
  if (!is_number_) {
    text.append(text_.data(), text_.size());
    return;
  }
  char digits[24];
  char* first = digits + sizeof digits;
  unsigned long long left = is_negative_ ? 0 - number_ : number_;
  do {
    *--first = static_cast<char>('0' + left % 10);
    left /= 10;
  } while (left != 0);
  if (is_negative_) *--first = '-';
  text.append(first, static_cast<std::size_t>(digits + sizeof digits - first));
}

FERRY_LAZY std::string joined(std::initializer_list<text_piece> pieces) {
  std::string text;
  for (const text_piece& each : pieces) each.append_to(text);
  return text;
}

#endif

}  // namespace ferry::detail
