// SPDX-License-Identifier: Apache-2.0
#include "tokenizer.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace skipgram {

namespace {

struct code_point {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  ///< 0: not UTF-8
};

/// Decodes the sequence at the front of `text`, which begins with a byte above 0x7f. Overlong forms,
/// surrogates and values past U+10FFFF are refused, as the standard asks.
code_point decode(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t lead = byte(0);
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t value = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return {};
    value = value << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < smallest[bytes] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {};
  return {value, bytes};
}

/// Spaces and punctuation outside of ASCII: Latin-1's signs, the general and CJK punctuation blocks, the byte
/// order mark.
bool separates(std::uint32_t c) {
  const bool letter_among_signs = c == 0xaa || c == 0xb5 || c == 0xba;
  return (c >= 0x80 && c < 0xc0 && !letter_among_signs) || c == 0xd7 || c == 0xf7 ||
         (c >= 0x2000 && c < 0x2070) || (c >= 0x3000 && c < 0x3040) || c == 0xfeff;
}

bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

void tokenize(std::string_view text, token_sink& sink) {
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) sink.word(word);
    word.clear();
  };
  int line_ends = 0;  // in a row: two make an empty line
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n') {
      end_word();
      if (++line_ends == 2) sink.end_sentence();
      ++i;
      continue;
    }
    if (c != '\r' && c != ' ' && c != '\t') line_ends = 0;
    if (is_ascii_letter(c) || is_ascii_digit(c)) {
      word.push_back(lower(c));
      ++i;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      const code_point point = decode(text.substr(i));
      if (point.bytes == 0 || separates(point.value))
        end_word();
      else
        word.append(text.substr(i, point.bytes));
      if (point.bytes == 0) sink.invalid_byte();
      i += point.bytes == 0 ? 1 : point.bytes;
    } else {
      const bool between = c == '\'' && !word.empty() && i + 1 < text.size() && is_ascii_letter(text[i + 1]);
      if (between)
        word.push_back(c);
      else
        end_word();
      // A full stop inside "3.5" or "e.g." ends no sentence: what follows it is no space.
      const bool last =
          i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\n' || text[i + 1] == '\r';
      if ((c == '.' || c == '!' || c == '?') && last) sink.end_sentence();
      ++i;
    }
  }
  end_word();
}

}  // namespace skipgram
