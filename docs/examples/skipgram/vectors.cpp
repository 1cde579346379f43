// SPDX-License-Identifier: Apache-2.0
#include "vectors.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace skipgram {

void save_word2vec(const std::string& file, const corpus& text, const word_vectors& vectors) {
  const auto fail = [&] { throw std::runtime_error("cannot write '" + file + "': " + std::strerror(errno)); };
  struct closer {
    void operator()(std::FILE* open) const { std::fclose(open); }
  };
  std::unique_ptr<std::FILE, closer> out(std::fopen(file.c_str(), "wb"));
  if (out == nullptr) fail();
  bool good = std::fprintf(out.get(), "%zu %zu\n", vectors.rows(), vectors.width) > 0;
  for (std::size_t w = 0; good && w < vectors.rows(); ++w) {
    good = std::fputs(text.words[w].c_str(), out.get()) >= 0;
    for (std::size_t j = 0; good && j < vectors.width; ++j)
      good = std::fprintf(out.get(), " %.6g", static_cast<double>(vectors.row(w)[j])) > 0;
    good = good && std::fputc('\n', out.get()) != EOF;
  }
  if (!good || std::fclose(out.release()) != 0) fail();
}

std::vector<neighbor> nearest(const word_vectors& vectors, std::int32_t word, std::size_t count) {
  const std::size_t width = vectors.width;
  const auto dot = [&](const float* a, const float* b) {
    double sum = 0.0;
    for (std::size_t j = 0; j < width; ++j) sum += static_cast<double>(a[j]) * static_cast<double>(b[j]);
    return sum;
  };
  const float* query = vectors.row(static_cast<std::size_t>(word));
  const double size = std::sqrt(dot(query, query));
  std::vector<neighbor> list;
  for (std::size_t w = 0; w < vectors.rows(); ++w) {
    if (w == static_cast<std::size_t>(word)) continue;
    const double sizes = size * std::sqrt(dot(vectors.row(w), vectors.row(w)));
    list.push_back({static_cast<std::int32_t>(w),
                    static_cast<float>(sizes > 0.0 ? dot(query, vectors.row(w)) / sizes : 0.0)});
  }
  const auto length = static_cast<std::ptrdiff_t>(std::min(count, list.size()));
  std::partial_sort(list.begin(), list.begin() + length, list.end(),
                    [](const neighbor& a, const neighbor& b) {
                      return a.cosine != b.cosine ? a.cosine > b.cosine : a.word < b.word;
                    });
  list.resize(static_cast<std::size_t>(length));
  return list;
}

std::optional<std::int32_t> find_word(const corpus& text, const std::string& spelling) {
  const auto place = std::find(text.words.begin(), text.words.end(), spelling);
  if (place == text.words.end()) return std::nullopt;
  return static_cast<std::int32_t>(place - text.words.begin());
}

std::vector<std::int32_t> words_to_show(const corpus& text) {
  std::vector<std::int32_t> chosen;
  for (const char* word : {"music", "river", "disease", "king", "bird", "computer", "red", "war"})
    if (const auto number = find_word(text, word)) chosen.push_back(*number);
  // The most frequent words of any language are short and go with everything.
  for (std::size_t w = std::min<std::size_t>(100, text.words.size() / 4);
       w < text.words.size() && chosen.size() < 4; ++w)
    if (text.words[w].size() >= 5) chosen.push_back(static_cast<std::int32_t>(w));
  return chosen;
}

}  // namespace skipgram
