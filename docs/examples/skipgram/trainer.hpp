// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batch_slot.hpp"
#include "corpus.hpp"
#include "embedding.hpp"
#include "epoch_pairs.hpp"
#include "noise.hpp"
#include "options.hpp"
#include "pair_loader.hpp"
#include "progress.hpp"
#include "rank_group.hpp"
#include "vectors.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace skipgram {

/// The counts of an epoch.
struct epoch_report {
  std::int64_t pairs = 0;
  double loss = 0.0;       ///< mean of a pair: the context word's and all its noise words'
  std::int64_t rows = 0;   ///< gathered, and updated by a step
  std::int64_t bytes = 0;  ///< moved by ferry's verbs
  double seconds = 0.0;
};

struct ranking {
  std::int64_t pairs = 0;
  double auc = 0.5;
};

/// The two tables and the work on them. With a group the tables are spread over its ranks, and each rank, with a trainer of its own, works on its part of every batch; all ranks make the same calls and get
/// the same numbers, which are those of one trainer alone.
class trainer {
 public:
  trainer(const execution& exec, const corpus& text, const options& chosen,
          const rank_group* ranks = nullptr);

  epoch_report train(std::uint64_t epoch, progress_bar& progress);
  /// The probability that a centre word scores the context word of a held-out pair above a noise word; ties
  /// count half.
  [[nodiscard]] ranking rank_held_out();

  /// The centre words' vectors.
  [[nodiscard]] word_vectors vectors() const;
  [[nodiscard]] const embedding& centre_table() const { return *centre_; }
  [[nodiscard]] const embedding& context_table() const { return *context_; }

 private:
  struct totals {
    std::int64_t sum = 0, unique_centres = 0, unique_samples = 0;
  };

  [[nodiscard]] std::pair<std::size_t, std::size_t> part_of(std::size_t pairs) const;
  void fit(batch_slot& slot, std::size_t pairs, bool trains);
  void enqueue(batch_slot& slot, const pair_batch& words, std::uint64_t epoch, bool trains);
  totals finish(batch_slot& slot) const;
  void sum_over_ranks(std::vector<std::int64_t>& numbers) const;
  void account(epoch_report& report, const totals& counts, std::int64_t pairs) const;

  execution exec_;
  const corpus& text_;
  const options& options_;
  const rank_group* ranks_;
  std::int64_t per_pair_;
  noise_distribution noise_;
  epoch_pairs held_out_;
  std::unique_ptr<embedding> centre_, context_;
  std::array<batch_slot, 2> slots_;
};

}  // namespace skipgram
