// SPDX-License-Identifier: Apache-2.0
#include "value_words.hpp"

#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::detail {
namespace {

std::string hexadecimal_words(std::span<const std::byte> bytes) {
  constexpr const char* digits = "0123456789abcdef";
  std::string words = "0x";
  for (const std::byte byte : bytes) {
    words += digits[std::to_integer<unsigned>(byte) >> 4U];
    words += digits[std::to_integer<unsigned>(byte) & 15U];
  }
  return words;
}

std::size_t first_difference(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t place = 0;
  while (place < most && a[place] == b[place]) ++place;
  return place;
}

std::string quoted_part(std::string_view text, std::size_t begin) {
  constexpr std::size_t most = 60;
  const std::string_view part = text.substr(std::min(begin, text.size()), most);
  return (begin == 0 ? "'" : "'...") + std::string(part) + (begin + part.size() < text.size() ? "...'" : "'");
}

template <class Number>
Number element_number(std::span<const std::byte> element) {
  Number number{};
  std::memcpy(&number, element.data(), std::min(sizeof number, element.size()));
  return number;
}

/// "[3, 4]"
std::string index_words(const manifest_array& array, std::uint64_t element) {
  std::string words;
  for (std::size_t i = array.extents.size(); i-- > 0;) {
    words = std::to_string(element % array.extents[i]) + (words.empty() ? "" : ", ") + words;
    element /= array.extents[i];
  }
  return "[" + words + "]";
}

}  // namespace

std::string element_words(std::string_view dtype, std::span<const std::byte> element) {
  if (floating_dtype_bytes(dtype) == element.size() && !element.empty()) {
    double number = 0;
    convert_from_file<double>(dtype, element.data(), reinterpret_cast<std::byte*>(&number), 1);
    return manifest_fact{"", manifest_fact::real, "", {std::bit_cast<std::uint64_t>(number)}}.describe();
  }
  if (dtype == "bool") return element_number<std::uint8_t>(element) != 0 ? "true" : "false";
  if (dtype == "i8") return std::to_string(element_number<std::int8_t>(element));
  if (dtype == "i16") return std::to_string(element_number<std::int16_t>(element));
  if (dtype == "i32") return std::to_string(element_number<std::int32_t>(element));
  if (dtype == "i64") return std::to_string(element_number<std::int64_t>(element));
  if (dtype == "u8" || dtype == "u16" || dtype == "u32" || dtype == "u64")
    return std::to_string(element_number<std::uint64_t>(element));
  return hexadecimal_words(element);
}

std::string differing_texts(std::string_view loaded, std::string_view present) {
  const std::size_t place = first_difference(loaded, present);
  const std::size_t begin = place < 40 ? 0 : place - 20;
  return "is " + quoted_part(loaded, begin) + " in the file, and " + quoted_part(present, begin) + " here" +
         (begin == 0 ? "" : ", from byte " + std::to_string(place) + " on");
}

std::string differing_bytes(std::string_view loaded, std::string_view present) {
  const std::size_t place = first_difference(loaded, present);
  const auto words_from = [&](std::string_view bytes) {
    constexpr std::size_t most = 16;
    return hexadecimal_words(std::as_bytes(std::span(bytes.substr(place, most))));
  };
  return "is " + words_from(loaded) + " in the file, and " + words_from(present) + " here, from byte " +
         std::to_string(place) + " of " + std::to_string(present.size()) + " on";
}

std::string differing_elements(const manifest_array& array, std::size_t first,
                               std::span<const std::byte> loaded, std::span<const std::byte> present) {
  const std::size_t bytes = array.element_bytes;
  std::size_t place = 0;
  while (std::memcmp(loaded.data() + place * bytes, present.data() + place * bytes, bytes) == 0) ++place;
  const auto words_in = [&](std::span<const std::byte> elements) {
    return element_words(array.dtype, elements.subspan(place * bytes, bytes));
  };
  const std::string element =
      array.extents.empty() ? std::string() : "element " + index_words(array, first + place) + " ";
  return element + "is " + words_in(loaded) + " in the file, and " + words_in(present) + " here";
}

}  // namespace ferry::detail
