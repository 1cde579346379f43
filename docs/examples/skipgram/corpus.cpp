// SPDX-License-Identifier: Apache-2.0
#include "corpus.hpp"

#include "tokenizer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string_view>

namespace skipgram {

namespace {

std::string read_file(const std::string& name) {
  errno = 0;
  std::ifstream file(name, std::ios::binary);
  std::string bytes;
  char block[1 << 16];
  while (file.read(block, sizeof block) || file.gcount() > 0)
    bytes.append(block, static_cast<std::size_t>(file.gcount()));
  if (!file.eof())
    throw std::runtime_error("cannot read '" + name + "': " + std::strerror(errno != 0 ? errno : EIO));
  return bytes;
}

/// Numbers words in the order of their first appearance; finish() renumbers them by frequency.
class corpus_builder final : public token_sink {
 public:
  void word(std::string_view spelling) override {
    key_.assign(spelling);
    const auto [entry, fresh] = numbers_.try_emplace(key_, static_cast<std::int32_t>(result_.words.size()));
    if (fresh) {
      result_.words.push_back(key_);
      result_.counts.push_back(0);
    }
    ++result_.counts[static_cast<std::size_t>(entry->second)];
    result_.tokens.push_back(entry->second);
    // A text without any punctuation is cut, so that shuffling sentences still shuffles the text.
    if (result_.tokens.size() - result_.sentence_begin.back() >= longest_sentence) end_sentence();
  }
  void end_sentence() override {
    if (result_.tokens.size() > result_.sentence_begin.back())
      result_.sentence_begin.push_back(result_.tokens.size());
  }
  void invalid_byte() override { ++result_.invalid_bytes; }

  /// Equally frequent words are ordered by their bytes: word numbers depend on the text alone.
  corpus finish(std::uint64_t min_count) {
    end_sentence();
    std::vector<std::int32_t> order(result_.words.size());
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order,
                  [&](std::int32_t w) { return result_.counts[static_cast<std::size_t>(w)] < min_count; });
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      const auto x = static_cast<std::size_t>(a), y = static_cast<std::size_t>(b);
      return result_.counts[x] != result_.counts[y] ? result_.counts[x] > result_.counts[y]
                                                    : result_.words[x] < result_.words[y];
    });
    if (order.size() < 2)
      throw std::runtime_error("the text is too small: of its " + std::to_string(result_.tokens.size()) +
                               " words, " + std::to_string(order.size()) + " different ones occur at least " +
                               std::to_string(min_count) + " times, and 2 are needed (see --min-count)");

    corpus result;
    result.tokens_read = result_.tokens.size();
    result.invalid_bytes = result_.invalid_bytes;
    std::vector<std::int32_t> renumbered(result_.words.size(), -1);
    for (const std::int32_t old : order) {
      renumbered[static_cast<std::size_t>(old)] = static_cast<std::int32_t>(result.words.size());
      result.words.push_back(std::move(result_.words[static_cast<std::size_t>(old)]));
      result.counts.push_back(result_.counts[static_cast<std::size_t>(old)]);
    }
    for (std::size_t s = 0; s < result_.sentences(); ++s) {
      for (const std::int32_t old : result_.sentence(s))
        if (const std::int32_t word = renumbered[static_cast<std::size_t>(old)]; word >= 0)
          result.tokens.push_back(word);
      if (result.tokens.size() > result.sentence_begin.back())
        result.sentence_begin.push_back(result.tokens.size());
    }
    return result;
  }

 private:
  static constexpr std::size_t longest_sentence = 1000;

  corpus result_;
  std::string key_;
  std::unordered_map<std::string, std::int32_t> numbers_;
};

}  // namespace

corpus read_text(const std::string& file, std::uint64_t min_count) {
  corpus_builder builder;
  tokenize(read_file(file), builder);
  return builder.finish(min_count);
}

corpus read_wordnet(const std::string& folder, std::uint64_t min_count) {
  corpus_builder builder;
  for (const char* part : {"noun", "verb", "adj", "adv"}) {
    const std::string bytes = read_file(folder + "/data." + part);
    for (std::string_view rest = bytes; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const auto bar = line.find(" | ");
      if (line.starts_with("  ") || bar == std::string_view::npos)
        continue;  // the licence, and lines without a gloss
      tokenize(line.substr(bar + 3), builder);
      builder.end_sentence();
    }
  }
  return builder.finish(min_count);
}

}  // namespace skipgram
