// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "corpus.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace skipgram {

/// One row for each word, in ordinary host memory.
struct word_vectors {
  std::vector<float> values;
  std::size_t width = 0;
  [[nodiscard]] std::size_t rows() const { return values.size() / width; }
  [[nodiscard]] const float* row(std::size_t word) const { return values.data() + word * width; }
};

/// Writes word2vec's text format: "<words> <dim>", then a line for each word. Throws std::runtime_error where
/// it can't.
void save_word2vec(const std::string& file, const corpus& text, const word_vectors& vectors);

struct neighbor {
  std::int32_t word;
  float cosine;
};
/// The `count` words whose vectors point most nearly the same way.
std::vector<neighbor> nearest(const word_vectors& vectors, std::int32_t word, std::size_t count);

std::optional<std::int32_t> find_word(const corpus& text, const std::string& spelling);

/// Words to show where the user named none: well-known ones that the text has, else frequent long ones.
std::vector<std::int32_t> words_to_show(const corpus& text);

}  // namespace skipgram
