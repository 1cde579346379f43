// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/loader/prefetch_options.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ferry::detail {

/// The samples of each batch. The order of an epoch is cut into steps of batch x ranks samples; each rank
/// takes its part of a step. So all ranks have equally many batches, which keeps collectives together, and no
/// sample is served twice in an epoch. A last step with fewer samples is shared evenly, so a rank may get an
/// empty batch of it.
class batch_order {
 public:
  /// `user`: the class that messages name.
  batch_order(std::int64_t samples, const prefetch_options& options, const char* user = "prefetcher");

  /// "ferry::<user>: <text>"
  [[nodiscard]] std::string message(const char* text) const;
  /// Batches of an epoch.
  [[nodiscard]] std::int64_t batches() const { return batches_; }
  /// Batches of all epochs.
  [[nodiscard]] std::int64_t all_batches() const;
  /// The number of the first batch to serve, counted from the first epoch as in epoch_of and list.
  [[nodiscard]] std::int64_t first() const { return options_.first_batch; }
  /// The number of its epoch.
  [[nodiscard]] std::int64_t epoch_of_first() const {
    return batches_ == 0 ? options_.first_epoch : epoch_of(first());
  }
  [[nodiscard]] std::int64_t epoch_of(std::int64_t batch) const {
    return options_.first_epoch + batch / batches_;
  }
  /// Writes the samples of a batch, numbered from the first epoch on, to `samples`.
  void list(std::int64_t batch, std::vector<std::int64_t>& samples) const;

 private:
  /// The place of the first of `count` samples that is a rank's.
  [[nodiscard]] std::int64_t share(std::int64_t count, std::int64_t rank) const;

  std::int64_t samples_;
  prefetch_options options_;
  const char* user_;
  std::int64_t step_ = 1;
  std::int64_t batches_ = 0;
};

}  // namespace ferry::detail
