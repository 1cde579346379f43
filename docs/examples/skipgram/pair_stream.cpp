// SPDX-License-Identifier: Apache-2.0
#include "pair_stream.hpp"

#include "sampling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace skipgram {

pair_stream::pair_stream(const corpus& text, const options& chosen, part which, std::uint64_t epoch)
    : text_(text),
      options_(chosen),
      which_(which),
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
}

double pair_stream::progress() const {
  return order_.empty() ? 1.0 : static_cast<double>(sentences_read_) / static_cast<double>(order_.size());
}

void pair_stream::next(word_pairs& batch) {
  batch.centres.clear();
  batch.contexts.clear();
  while (batch.size() < options_.batch) {
    if (given_ == ready_.size()) {
      if (sentences_read_ == order_.size()) return;
      read_sentence(order_[sentences_read_++]);
      continue;
    }
    const std::size_t taken = std::min(options_.batch - batch.size(), ready_.size() - given_);
    const auto append = [&](auto& to, const auto& from) {
      const auto first = from.begin() + static_cast<std::ptrdiff_t>(given_);
      to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(taken));
    };
    append(batch.centres, ready_.centres);
    append(batch.contexts, ready_.contexts);
    given_ += taken;
  }
}

void pair_stream::read_sentence(std::size_t s) {
  kept_.clear();
  reach_.clear();
  const auto words = text_.sentence(s);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto random =
        random_bits(options_.seed, purpose::keep_and_window, epoch_, text_.sentence_begin[s] + i);
    if (ferry::random::unit(random.word[0], random.word[1]) >= keep_[static_cast<std::size_t>(words[i])])
      continue;
    kept_.push_back(words[i]);
    reach_.push_back(1 + below(random.word[2], options_.window));
  }
  ready_.centres.clear();
  ready_.contexts.clear();
  given_ = 0;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const std::size_t first = i - std::min<std::size_t>(i, reach_[i]);
    const std::size_t last = std::min<std::size_t>(kept_.size() - 1, i + reach_[i]);
    for (std::size_t j = first; j <= last; ++j) {
      if (j == i || held_out_(kept_[i], kept_[j]) != (which_ == part::held_out)) continue;
      ready_.centres.push_back(kept_[i]);
      ready_.contexts.push_back(kept_[j]);
    }
  }
}

}  // namespace skipgram
