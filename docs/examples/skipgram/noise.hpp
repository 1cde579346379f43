// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "embedding.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <span>

namespace skipgram {

/// The noise distribution, count^(3/4), as an alias table (Walker 1977, Vose 1991): one draw is two table
/// look-ups, however many words there are. Integers only, so every backend draws the same words.
class noise_distribution {
 public:
  noise_distribution(const execution& exec, std::span<const std::uint64_t> counts);

  /// The part that kernels use.
  struct sampler {
    ferry::tensor_view<const std::uint32_t, ferry::device_space> threshold;
    ferry::tensor_view<const std::int32_t, ferry::device_space> alias;

    KOKKOS_FUNCTION std::int32_t draw(std::uint32_t column_bits, std::uint32_t side_bits) const {
      const auto column =
          static_cast<std::uint32_t>(column_bits * static_cast<std::uint64_t>(alias.rows()) >> 32);
      return side_bits < threshold(column) ? static_cast<std::int32_t>(column) : alias(column);
    }
  };
  [[nodiscard]] sampler view() const { return {threshold_.view(), alias_.view()}; }

 private:
  ferry::tensor<std::uint32_t, ferry::device_space> threshold_;
  ferry::tensor<std::int32_t, ferry::device_space> alias_;
};

}  // namespace skipgram
