// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "embedding.hpp"
#include "epoch_pairs.hpp"
#include "options.hpp"

#include <ferry/loader/prefetcher.hpp>

#include <cstdint>
#include <span>

namespace skipgram {

/// The source of a prefetcher: its worker threads write pairs of words into page-locked slots, which travel to
/// the device while it works on the batches before.
struct pairs_of_batch {
  const epoch_pairs* pairs;
  void operator()(const ferry::batch_request& batch, std::span<std::int32_t> centres,
                  std::span<std::int32_t> contexts) const {
    if (!batch.samples.empty()) pairs->fill(batch.samples.front(), centres, contexts);
  }
};
using pair_loader =
    ferry::prefetcher<execution, ferry::function_source<pairs_of_batch, std::int32_t, std::int32_t>>;
/// Centre words and context words, one element per pair.
using pair_batch = pair_loader::batch_type;

/// The batches of an epoch, in the order of its pairs. `pairs` must outlive the loader.
inline pair_loader load(const execution& exec, const epoch_pairs& pairs, const options& chosen) {
  return {exec,
          ferry::made_by(pairs.size(), pairs_of_batch{&pairs}, ferry::batch_field<std::int32_t>("centres"),
                         ferry::batch_field<std::int32_t>("contexts")),
          {.batch = static_cast<std::int64_t>(chosen.batch), .workers = chosen.workers}};
}

}  // namespace skipgram
