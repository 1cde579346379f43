// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/joined.hpp>

namespace ferry::detail {

void text_piece::append_to(std::string& text) const {
  if (!is_number_) {
    text.append(text_.data(), text_.size());
    return;
  }
  char digits[24];
  char* first = digits + sizeof digits;
  unsigned long long number = is_negative_ ? 0 - number_ : number_;
  do {
    *--first = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  if (is_negative_) *--first = '-';
  text.append(first, static_cast<std::size_t>(digits + sizeof digits - first));
}

std::string joined(std::initializer_list<text_piece> pieces) {
  std::string text;
  for (const text_piece& piece : pieces) piece.append_to(text);
  return text;
}

std::string counted(text_piece number, std::string_view singular, std::string_view plural) {
  return joined({number, " ", number.is_one() ? singular : plural});
}

}  // namespace ferry::detail
