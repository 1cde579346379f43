// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

namespace ferry {

/// The request of a prefetcher to a source: one batch.
struct batch_request {
  std::int64_t epoch = 0;                   ///< number of the epoch
  std::int64_t number = 0;                  ///< number of the batch in its epoch
  std::span<const std::int64_t> samples;    ///< the samples of the batch, in order
  int worker = 0;                           ///< number of the thread that makes it, in [0, workers)
  const std::atomic<bool>* stop = nullptr;  ///< for stopping()

  /// True if the prefetcher is being destroyed. A source that takes long or blocks should look now and then,
  /// and return or throw: the destructor waits for it.
  [[nodiscard]] bool stopping() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
};

}  // namespace ferry
