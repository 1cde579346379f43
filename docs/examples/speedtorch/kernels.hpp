// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace word_embeddings {

using ferry::device_space;

/// Loss and gradients of skip-gram with negative sampling: -log s(u.v) for the context word and -log s(-u.v)
/// for each noise word, averaged over the batch. One thread for each pair of words. The rows are those of the
/// switchers' weights; gradients are written for each position, so that their sum has a fixed order.
struct pair_gradients {
  ferry::tensor_view<const float, device_space> u, v;                                       ///< the weights
  const std::int64_t *centres, *contexts, *noise;                                           ///< rows of them
  ferry::tensor_view<float, device_space> u_gradients, context_gradients, noise_gradients;  ///< by position
  ferry::tensor_view<double, device_space> losses;
  std::int64_t negatives;

  KOKKOS_FUNCTION void operator()(std::int64_t pair) const {
    const auto width = static_cast<std::int64_t>(u.width());
    const float share = 1.0f / static_cast<float>(losses.rows());
    const float* centre = u.data() + centres[pair] * width;
    float* to_centre = u_gradients.data() + pair * width;
    for (std::int64_t j = 0; j < width; ++j) to_centre[j] = 0.0f;
    double loss = 0.0;
    for (std::int64_t k = 0; k <= negatives; ++k) {
      const std::int64_t place = pair * negatives + k - 1;
      const float* row = v.data() + (k == 0 ? contexts[pair] : noise[place]) * width;
      float* to_other =
          k == 0 ? context_gradients.data() + pair * width : noise_gradients.data() + place * width;
      float score = 0.0f;
      for (std::int64_t j = 0; j < width; ++j) score += centre[j] * row[j];
      const float wrong = k == 0 ? -score : score;
      const float decay = Kokkos::exp(-Kokkos::abs(score));
      loss += (wrong > 0.0f ? wrong : 0.0f) + Kokkos::log1p(decay);
      const float slope = (k == 0 ? -1.0f : 1.0f) * (wrong >= 0.0f ? 1.0f : decay) / (1.0f + decay) * share;
      for (std::int64_t j = 0; j < width; ++j) {
        to_other[j] = slope * centre[j];
        to_centre[j] += slope * row[j];
      }
    }
    losses(pair) = loss;
  }
};

/// The sum of the losses of a batch.
struct sum_losses {
  ferry::tensor_view<const double, device_space> losses;

  KOKKOS_FUNCTION void operator()(std::int64_t pair, double& sum) const { sum += losses(pair); }
};

}  // namespace word_embeddings
