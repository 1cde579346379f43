// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace skipgram {

/// A text as numbers: its vocabulary, most frequent word first, and its sentences as runs of word numbers.
struct corpus {
  std::vector<std::string> words;
  std::vector<std::uint64_t> counts;           ///< occurrences of each word
  std::vector<std::int32_t> tokens;            ///< rare words are left out
  std::vector<std::size_t> sentence_begin{0};  ///< one more than there are sentences
  std::uint64_t tokens_read = 0;               ///< rare words included
  std::uint64_t invalid_bytes = 0;             ///< bytes that are no UTF-8; each one counts as a space

  [[nodiscard]] std::size_t sentences() const { return sentence_begin.size() - 1; }
  [[nodiscard]] std::span<const std::int32_t> sentence(std::size_t s) const {
    return std::span(tokens).subspan(sentence_begin[s], sentence_begin[s + 1] - sentence_begin[s]);
  }
};

/// Reads any UTF-8 text. A full stop, a question or exclamation mark, or an empty line ends a sentence.
/// Throws std::runtime_error for a file that can't be read, or that leaves fewer than two words.
corpus read_text(const std::string& file, std::uint64_t min_count);

/// Reads the glosses of WordNet's data files in `folder`: one sentence each, definition and examples
/// together.
corpus read_wordnet(const std::string& folder, std::uint64_t min_count);

}  // namespace skipgram
