// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bags/bags.hpp"

/// A step on bags against ferry::step on a gradient for every position, which a plain loop makes.
namespace ferry_test {

template <class T>
T from_compute(double value) {
  if constexpr (ferry::is_extended_number<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

/// The gradient of each position; `chosen` are the positions of the maxima.
template <class Compute, class V, class Weights = no_weights>
std::vector<Compute> expanded(const std::vector<V>& grads, std::size_t width,
                              const std::vector<std::int64_t>& rows, const std::vector<std::size_t>& offsets,
                              std::string_view how, const Weights& weights = {},
                              const std::vector<std::int64_t>& chosen = {}) {
  std::vector<Compute> result(rows.size() * width);
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    Compute count{0};
    for (std::size_t p = offsets[b]; p < offsets[b + 1]; ++p)
      if (rows[p] >= 0) count = count + Compute{1};
    for (std::size_t p = offsets[b]; p < offsets[b + 1]; ++p)
      for (std::size_t c = 0; c < width; ++c) {
        auto value = static_cast<Compute>(plain(grads[b * width + c]));
        if (how == "pooling::mean") value = count > Compute{0} ? value / count : Compute{0};
        if (how == "pooling::max" && chosen[b * width + c] != static_cast<std::int64_t>(p))
          value = Compute{0};
        if constexpr (!std::is_same_v<Weights, no_weights>)
          value = static_cast<Compute>(plain(weights[p])) * value;
        result[p * width + c] = value;
      }
  }
  return result;
}

/// A batch of bags with gradients.
template <class T, class V = float>
struct bag_batch {
  std::size_t rows, width, bags;
  std::vector<std::size_t> offsets;
  std::vector<std::int64_t> ids;
  std::vector<T> values;
  std::vector<V> grads;

  bag_batch(std::mt19937_64& random, std::size_t rows_, std::size_t width_, std::size_t bags_)
      : rows(rows_), width(width_), bags(bags_), offsets(bag_offsets(random, bags_)) {
    ids = indices<std::int64_t>(random, offsets.back(), rows);
    values = uneven_values<T>(random, rows * width);
    grads = uneven_values<V>(random, bags * width);
  }
};

/// Steps twice, the second time with state, by step on expanded gradients.
template <class Compute, class T, class Rule, class... Policies>
std::vector<T> stepped_by_positions(const Rule& rule, const std::vector<T>& values, std::size_t rows,
                                    std::size_t width, const std::vector<std::int64_t>& ids,
                                    const std::vector<Compute>& gradients, Policies... policies) {
  const exec_space exec;
  auto table = make<ferry::device_space>("table", rows, width, values);
  auto state = ferry::optim::make_state(rule, table);
  const auto grads = make<ferry::device_space>("grads", ids.size(), width, gradients);
  for (int s = 0; s < 2; ++s) ferry::step(exec, rule, table, state, ids, grads, policies...).wait();
  return take(table);
}

}  // namespace ferry_test
