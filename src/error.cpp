// SPDX-License-Identifier: Apache-2.0
#include <ferry/error.hpp>

namespace ferry::detail {

const char the_library_is_not_linked_so_link_the_target_ferry_or_compile_src_ferry_cpp = 1;
const char FERRY_SAME_CONTAINERS = 1;
const char FERRY_SAME_STRINGS = 1;

std::string text_piece::join(const text_piece* pieces, std::size_t count) {
  std::string text;
  for (const text_piece* piece = pieces; piece != pieces + count; ++piece)
    text.append(piece->kind_ == kind::text      ? piece->text_
                : piece->kind_ == kind::real    ? std::to_string(piece->real_)
                : piece->kind_ == kind::natural ? std::to_string(piece->number_)
                                                : std::to_string(static_cast<long long>(piece->number_)));
  return text;
}

std::string counted(const text_piece& number, std::string_view singular, std::string_view plural) {
  const std::string digits = joined(number);
  return joined(digits, " ", digits == "1" ? singular : plural);
}

}  // namespace ferry::detail
