// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "corpus.hpp"
#include "options.hpp"
#include "sampling.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace skipgram {

/// Which of the (centre, context) pairs of a text: those to train on, or those that are only ever ranked. The
/// split is by the two words, not by the occurrence, so no sentence gives a held-out pair away.
enum class part { training, held_out };

struct word_pairs {
  std::vector<std::int32_t> centres, contexts;
  [[nodiscard]] std::size_t size() const { return centres.size(); }
};

/// The pairs of one epoch, in batches: sentences in a random order; frequent words thinned out; for each word
/// that is left a random window, at most options.window wide on each side, as word2vec does it.
class pair_stream {
 public:
  pair_stream(const corpus& text, const options& chosen, part which, std::uint64_t epoch);

  /// Replaces `batch` by the next options.batch pairs; fewer at the end, then none.
  void next(word_pairs& batch);
  /// The share of the sentences that were read, in [0, 1].
  [[nodiscard]] double progress() const;

 private:
  void read_sentence(std::size_t s);

  const corpus& text_;
  const options& options_;
  part which_;
  std::uint64_t epoch_;
  hold_out held_out_;
  std::vector<double> keep_;  ///< probability with which each word is kept
  std::vector<std::uint32_t> order_;
  std::size_t sentences_read_ = 0;
  word_pairs ready_;  ///< of the sentence at hand
  std::size_t given_ = 0;
  std::vector<std::int32_t> kept_;
  std::vector<std::uint32_t> reach_;
};

}  // namespace skipgram
