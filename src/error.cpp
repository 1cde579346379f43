// SPDX-License-Identifier: Apache-2.0
#include <ferry/error.hpp>

namespace ferry::detail {

const char the_library_is_not_linked_so_link_the_target_ferry_or_compile_src_ferry_cpp = 1;
const char FERRY_SAME_CONTAINERS = 1;
const char FERRY_SAME_STRINGS = 1;

void text_piece::append_to(std::string& text) const {
  if (!is_number_) {
    text.append(text_.data(), text_.size());
    return;
  }
  if (is_real_) {
    text += std::to_string(real_);
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

std::string joined_pieces(const text_piece* pieces, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) pieces[i].append_to(text);
  return text;
}

std::string counted(const text_piece& number, std::string_view singular, std::string_view plural) {
  return joined(number, " ", number.is_one() ? singular : plural);
}

}  // namespace ferry::detail
