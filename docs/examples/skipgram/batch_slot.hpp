// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "embedding.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace skipgram {

/// The device's memory for one batch, besides the words that the loader brings. The trainer has two: while
/// the device works on one, the host enqueues the other.
struct batch_slot {
  batch_slot() = default;
  batch_slot(ferry::device home, std::size_t count, std::size_t per_pair, std::size_t width, bool trains)
      : pairs(count),
        samples("batch::samples", home, count * per_pair),
        centre_rows("batch::centre_rows", home, count, width),
        sample_rows("batch::sample_rows", home, count * per_pair, width),
        centre_gradients("batch::centre_gradients", home, trains ? count : 0, width),
        sample_gradients("batch::sample_gradients", home, trains ? count * per_pair : 0, width),
        values("batch::values", home, count),
        totals("batch::totals", home, 3),
        totals_here("batch::totals_here", 3) {}

  std::size_t pairs = 0;
  ferry::tensor<std::int32_t, ferry::device_space> samples;
  batch_rows centre_rows, sample_rows, centre_gradients, sample_gradients;
  ferry::tensor<std::int64_t, ferry::device_space> values;  // loss or score of each pair
  ferry::tensor<std::int64_t, ferry::device_space> totals;
  ferry::tensor<std::int64_t, ferry::pinned_space> totals_here;
  std::vector<ferry::ticket> in_flight;  // last, so that it is waited for before the memory goes
};

}  // namespace skipgram
