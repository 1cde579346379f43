// SPDX-License-Identifier: Apache-2.0
#include "noise.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace skipgram {

noise_distribution::noise_distribution(const execution& exec, std::span<const std::uint64_t> counts)
    : threshold_("noise::threshold", ferry::device_of(exec), counts.size()),
      alias_("noise::alias", ferry::device_of(exec), counts.size()) {
  const std::size_t words = counts.size();
  std::vector<double> height(
      words);  // 1 on average: each column gets one word, and a second one to fill it up
  std::transform(counts.begin(), counts.end(), height.begin(),
                 [](std::uint64_t count) { return std::pow(static_cast<double>(count), 0.75); });
  const double sum = std::accumulate(height.begin(), height.end(), 0.0);
  for (double& number : height) number *= static_cast<double>(words) / sum;

  std::vector<std::uint32_t> threshold(words, std::numeric_limits<std::uint32_t>::max());
  std::vector<std::int32_t> alias(words);
  std::iota(alias.begin(), alias.end(), 0);
  std::vector<std::size_t> low, high;
  for (std::size_t w = 0; w < words; ++w) (height[w] < 1.0 ? low : high).push_back(w);
  while (!low.empty() && !high.empty()) {
    const std::size_t donor = high.back();
    const std::size_t receiver = low.back();
    low.pop_back();
    threshold[receiver] = static_cast<std::uint32_t>(height[receiver] * 0x1p32);
    alias[receiver] = static_cast<std::int32_t>(donor);
    height[donor] -= 1.0 - height[receiver];
    if (height[donor] < 1.0) {
      high.pop_back();
      low.push_back(donor);
    }
  }
  ferry::copy(exec, threshold, threshold_).wait();
  ferry::copy(exec, alias, alias_).wait();
}

}  // namespace skipgram
