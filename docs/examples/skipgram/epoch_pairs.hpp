// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "corpus.hpp"
#include "options.hpp"
#include "sampling.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace skipgram {

/// Which of the (centre, context) pairs of a text: those to train on, or those that are only ever ranked. The
/// split is by the two words, not by the occurrence, so no sentence gives a held-out pair away.
enum class part { training, held_out };

/// The pairs of one epoch: sentences in a random order; frequent words thinned out; for each word that is left
/// a random window, at most options.window wide on each side, as word2vec does it. The pairs are counted once
/// and made when they are needed, from any place on and by several threads at once.
class epoch_pairs {
 public:
  /// `most`: stops counting there.
  epoch_pairs(const corpus& text, const options& chosen, part side, std::uint64_t epoch,
              std::int64_t most = std::numeric_limits<std::int64_t>::max());

  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Writes the pairs [first, first + centres.size()).
  void fill(std::int64_t first, std::span<std::int32_t> centres, std::span<std::int32_t> contexts) const;

 private:
  /// The words of a sentence that are left, and how far the window of each reaches.
  struct thinned {
    std::vector<std::int32_t> words;
    std::vector<std::uint32_t> reach;
  };

  void thin_out(std::size_t sentence, thinned& result) const;
  template <class Visit>
  void for_each_pair(const thinned& sentence, const Visit& visit) const;

  const corpus& text_;
  const options& options_;
  part side_;
  std::uint64_t epoch_;
  hold_out held_out_;
  std::vector<double> keep_;  ///< probability with which each word is kept
  std::vector<std::uint32_t> order_;
  std::vector<std::int64_t> begin_;  ///< number of the first pair of each sentence in this order
  std::int64_t size_ = 0;
};

}  // namespace skipgram
