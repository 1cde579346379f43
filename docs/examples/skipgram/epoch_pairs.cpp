// SPDX-License-Identifier: Apache-2.0
#include "epoch_pairs.hpp"

#include "sampling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace skipgram {

epoch_pairs::epoch_pairs(const corpus& text, const options& chosen, part side, std::uint64_t epoch,
                         std::int64_t most)
    : text_(text),
      options_(chosen),
      side_(side),
      epoch_(epoch),
      held_out_{chosen.seed, chosen.held_out},
      keep_(text.words.size(), 1.0),
      order_(text.sentences()) {
  // word2vec keeps a word of frequency f with probability sqrt(t / f) + t / f.
  if (chosen.subsample > 0.0)
    for (std::size_t w = 0; w < keep_.size(); ++w) {
      const double share =
          chosen.subsample * static_cast<double>(text.tokens.size()) / static_cast<double>(text.counts[w]);
      keep_[w] = std::sqrt(share) + share;
    }
  std::iota(order_.begin(), order_.end(), 0u);
  for (std::size_t i = 0; i + 1 < order_.size(); ++i)
    std::swap(
        order_[i],
        order_[i + below(random_bits(chosen.seed, purpose::shuffle, epoch, i).word[0], order_.size() - i)]);
  thinned sentence;
  for (std::size_t i = 0; i < order_.size() && size_ < most; ++i) {
    begin_.push_back(size_);
    thin_out(order_[i], sentence);
    for_each_pair(sentence, [&](std::int32_t, std::int32_t) { ++size_; });
  }
  size_ = std::min(size_, most);
}

void epoch_pairs::fill(std::int64_t first, std::span<std::int32_t> centres,
                       std::span<std::int32_t> contexts) const {
  // The last sentence that begins at or before the first pair; sentences without pairs begin there, too.
  auto position =
      static_cast<std::size_t>(std::upper_bound(begin_.begin(), begin_.end(), first) - begin_.begin()) - 1;
  thinned sentence;
  std::int64_t number = begin_[position];
  const std::int64_t end = first + static_cast<std::int64_t>(centres.size());
  for (; number < end; ++position) {
    thin_out(order_[position], sentence);
    for_each_pair(sentence, [&](std::int32_t centre, std::int32_t context) {
      if (number >= first && number < end) {
        centres[static_cast<std::size_t>(number - first)] = centre;
        contexts[static_cast<std::size_t>(number - first)] = context;
      }
      ++number;
    });
  }
}

void epoch_pairs::thin_out(std::size_t sentence, thinned& result) const {
  result.words.clear();
  result.reach.clear();
  const auto words = text_.sentence(sentence);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto random =
        random_bits(options_.seed, purpose::keep_and_window, epoch_, text_.sentence_begin[sentence] + i);
    if (ferry::random::unit(random.word[0], random.word[1]) >= keep_[static_cast<std::size_t>(words[i])])
      continue;
    result.words.push_back(words[i]);
    result.reach.push_back(1 + below(random.word[2], options_.window));
  }
}

template <class Visit>
void epoch_pairs::for_each_pair(const thinned& sentence, const Visit& visit) const {
  for (std::size_t i = 0; i < sentence.words.size(); ++i) {
    const std::size_t first = i - std::min<std::size_t>(i, sentence.reach[i]);
    const std::size_t last = std::min<std::size_t>(sentence.words.size() - 1, i + sentence.reach[i]);
    for (std::size_t j = first; j <= last; ++j)
      if (j != i && held_out_(sentence.words[i], sentence.words[j]) == (side_ == part::held_out))
        visit(sentence.words[i], sentence.words[j]);
  }
}

}  // namespace skipgram
