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

  /// True for the number 1.
  [[nodiscard]] bool is_one() const { return number_ == 1; }
  /// Appends the piece.
  [[gnu::cold]] void append_to(std::string& text) const;

 private:
  std::string_view text_;
  unsigned long long number_ = 0;
  bool is_number_ = false;
  bool is_negative_ = false;
};

/// The pieces of a message, one after the other. A chain of additions of strings does the same, with several
/// times the code.
[[gnu::cold]] std::string joined(std::initializer_list<text_piece> pieces);

/// A number and its noun: "1 bag", "2 bags".
[[gnu::cold]] std::string counted(text_piece number, std::string_view singular, std::string_view plural);

}  // namespace ferry::detail
