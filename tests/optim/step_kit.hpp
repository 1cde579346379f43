// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/test.hpp"

/// The kit of the tests of steps: batches of gradients, and rules applied to one row by plain loops.
namespace ferry_test {

template <class T>
struct gradient_batch {
  std::vector<std::int64_t> rows;
  std::vector<T> values;  // one row for each index
};

/// `count` rows, some of them named more than once.
template <class T>
gradient_batch<T> random_batch(std::mt19937_64& random, std::size_t count, std::size_t rows,
                               std::size_t width) {
  return {indices<std::int64_t>(random, count, rows), values<T>(random, count * width)};
}

/// The sum of the gradients of each row, in double.
template <class T>
std::map<std::size_t, std::vector<double>> summed(const gradient_batch<T>& batch, std::size_t width) {
  std::map<std::size_t, std::vector<double>> result;
  for (std::size_t p = 0; p < batch.rows.size(); ++p) {
    auto& row = result[static_cast<std::size_t>(batch.rows[p])];
    row.resize(width);
    for (std::size_t c = 0; c < width; ++c) row[c] += static_cast<double>(batch.values[p * width + c]);
  }
  return result;
}

/// Table and state of a rule in double, stepped element by element in the calling thread.
template <class Rule, int Fields>
struct plain_training {
  std::size_t width;
  std::vector<double> weights;
  std::vector<std::vector<double>> state;

  template <class T>
  plain_training(const Rule& rule, const std::vector<T>& start, std::size_t row_width)
      : width(row_width), weights(start.begin(), start.end()) {
    boost::hana::for_each(rule.fields(), [&](const auto& field) {
      if (field.active) state.emplace_back(start.size(), field.initial);
    });
    REQUIRE(state.size() == static_cast<std::size_t>(Fields));
  }

  /// One row by step `step` of the rule.
  void step(const Rule& rule, std::int64_t step, std::size_t row, const std::vector<double>& gradient) {
    const auto update = rule.template coefficients<double>(step);
    for (std::size_t c = 0; c < width; ++c) {
      double field[Fields == 0 ? 1 : Fields] = {};
      for (std::size_t f = 0; f < state.size(); ++f) field[f] = state[f][row * width + c];
      update.apply(weights[row * width + c], gradient[c], field);
      for (std::size_t f = 0; f < state.size(); ++f) state[f][row * width + c] = field[f];
    }
  }
};

/// The largest difference, relative to magnitudes above one.
template <class A, class B>
double farthest_apart(const std::vector<A>& left, const std::vector<B>& right) {
  REQUIRE(left.size() == right.size());
  double worst = 0.0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const auto a = static_cast<double>(left[i]);
    const auto b = static_cast<double>(right[i]);
    const double off = std::fabs(a - b) / std::fmax(1.0, std::fabs(b));
    worst = off == off ? std::fmax(worst, off) : 1e300;
  }
  return worst;
}

}  // namespace ferry_test
