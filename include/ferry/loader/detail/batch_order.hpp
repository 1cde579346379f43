// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/loader/permutation.hpp>
#include <ferry/loader/prefetch_options.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ferry::detail {

/// Which samples a batch has. The order of an epoch is cut into steps of batch x ranks samples; each rank
/// takes its part of a step. So all ranks have equally many batches, which keeps collectives together, and no
/// sample is served twice in an epoch. A last step with fewer samples is shared evenly, so a rank may get an
/// empty batch of it.
template <class Dependent>
class basic_batch_order {
 public:
  /// `user`: the class that messages name.
  basic_batch_order(std::int64_t samples, const prefetch_options& options, const char* user = "prefetcher")
      : samples_(samples), options_(options), user_(user) {
    const auto complain = [user](const char* option, std::int64_t value, const std::string& range) {
      throw invalid_argument(std::string("ferry::") + user + ": " + option + " is " + std::to_string(value) +
                             ", must be " + range);
    };
    if (samples < 0) complain("the number of samples of the source", samples, ">= 0");
    if (options.batch < 1) complain("batch", options.batch, ">= 1");
    if (options.workers < 1 || options.workers > 1024) complain("workers", options.workers, "from 1 to 1024");
    if (options.depth < 0 || options.depth == 1 || options.depth > 4096)
      complain("depth", options.depth, "0 or from 2 to 4096");
    if (options.epochs < 0) complain("epochs", options.epochs, ">= 0");
    if (options.first_epoch < 0) complain("first_epoch", options.first_epoch, ">= 0");
    if (options.ranks < 1) complain("ranks", options.ranks, ">= 1");
    if (options.rank < 0 || options.rank >= options.ranks)
      complain("rank", options.rank, "from 0 to " + std::to_string(options.ranks - 1) + ", below ranks");
    if (options.timeout.count() < 0) complain("timeout", options.timeout.count(), ">= 0");
    if (options.batch > std::numeric_limits<std::int64_t>::max() / options.ranks)
      complain("batch", options.batch, "so small that batch x ranks is a number of 64 bits");
    step_ = options.batch * options.ranks;
    batches_ = samples / step_;
    if (options.last == last_batch::keep && samples % step_ != 0) ++batches_;
  }

  /// "ferry::<user>: <text>"
  [[nodiscard]] std::string message(const char* text) const {
    return std::string("ferry::") + user_ + ": " + text;
  }
  /// Batches of an epoch.
  [[nodiscard]] std::int64_t batches() const { return batches_; }
  /// Batches of all epochs.
  [[nodiscard]] std::int64_t all_batches() const {
    constexpr auto endless = std::numeric_limits<std::int64_t>::max();
    if (batches_ == 0) return 0;
    return options_.epochs == 0 || options_.epochs > endless / batches_ ? endless
                                                                        : options_.epochs * batches_;
  }
  [[nodiscard]] std::int64_t epoch_of(std::int64_t batch) const {
    return options_.first_epoch + batch / batches_;
  }
  /// Samples of the epochs' batch `batch`, counted from the first epoch, into `to`.
  void list(std::int64_t batch, std::vector<std::int64_t>& to) const {
    const std::int64_t first = batch % batches_ * step_;
    const std::int64_t there = std::min(step_, samples_ - first);
    const std::int64_t begin = first + share(there, options_.rank);
    const std::int64_t count = first + share(there, options_.rank + 1) - begin;
    to.resize(static_cast<std::size_t>(count));
    if (options_.shuffle) {
      const permutation order(samples_, *options_.shuffle, static_cast<std::uint64_t>(epoch_of(batch)));
      for (std::int64_t i = 0; i < count; ++i) to[static_cast<std::size_t>(i)] = order(begin + i);
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[static_cast<std::size_t>(i)] = begin + i;
    }
  }

 private:
  /// Where the part of a rank begins.
  [[nodiscard]] std::int64_t share(std::int64_t there, std::int64_t rank) const {
    return there / options_.ranks * rank + there % options_.ranks * rank / options_.ranks;
  }

  std::int64_t samples_;
  prefetch_options options_;
  const char* user_;
  std::int64_t step_ = 1;
  std::int64_t batches_ = 0;
};
using batch_order = basic_batch_order<void>;

}  // namespace ferry::detail
