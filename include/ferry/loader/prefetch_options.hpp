// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace ferry {

/// The treatment of samples of an epoch that do not fill a batch.
enum class last_batch {
  keep,  ///< the last batch has fewer samples
  drop   ///< they are left out of this epoch
};

/// Options of a prefetcher.
struct prefetch_options {
  std::int64_t batch = 1;  ///< samples of a batch, >= 1; with `ranks`, of a batch of each rank
  /// Slots of the ring, >= 2: batches that are being made, travel, or are in use. 0: workers + 2, which keep
  /// all stages busy. More even out stages whose times vary. A row_prefetcher uses `ahead` more.
  int depth = 0;
  int workers = 1;  ///< threads that make batches, >= 1
  /// The seed of the order of the samples, see permutation; every epoch has another order. Without a seed the
  /// samples come in their own order.
  std::optional<std::uint64_t> shuffle = std::nullopt;
  last_batch last = last_batch::keep;  ///< what becomes of samples that do not fill a batch
  std::int64_t epochs = 1;             ///< epochs to serve; 0: without end
  std::int64_t first_epoch = 0;        ///< number of the first epoch, to go on after a restart
  /// Batches, counted from the begin of `first_epoch` over all epochs, that are left out: those before a
  /// restart. The position() of the prefetcher that ended, with the other options as they were. Costs the
  /// same for any number, because nothing is made of the batches before it.
  std::int64_t first_batch = 0;
  int rank = 0;   ///< number of this process among `ranks`
  int ranks = 1;  ///< processes that share the samples of each epoch
  int ahead = 1;  ///< of a row_prefetcher: batches whose rows are read ahead, from 1 to 8
  /// How long next() waits for a batch before it throws; 0: without limit.
  std::chrono::milliseconds timeout{0};
};

namespace detail {

/// PyTorch's names of the options, for the sentence about them.
struct torch_options {
  struct count {
    count(std::int64_t) {}
  };
  count batch_size;  // without a default, so that {} are prefetch_options
  bool shuffle = false;
  int num_workers = 0;
  bool drop_last = false;
  int prefetch_factor = 0;
};

template <class Source>
consteval void refuse_torch_options() {
  static_assert(
      sizeof(Source) == 0,
      "ferry: the options of a prefetcher are those of ferry::prefetch_options: {.batch = 256, .depth = 4, .workers = 2, .shuffle = 42, .last = last_batch::drop}, in this order.");
}

}  // namespace detail
}  // namespace ferry
