// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "optim/step_kit.hpp"

/// Transforms of a step and rules that see whole rows, as plain loops in double.
namespace ferry_test {

/// The changes of a row's summed gradient, in order, and of its new weights.
struct plain_stages {
  std::vector<std::function<void(std::vector<double>&)>> gradient;
  std::vector<double> factors;       // of rows; empty: none
  std::vector<std::uint8_t> frozen;  // empty: none
  double max_norm = INFINITY;

  [[nodiscard]] bool leaves_out(std::size_t row) const { return !frozen.empty() && frozen[row] != 0; }
};

inline double norm_of(const std::vector<double>& row) {
  double squares = 0.0;
  for (const double v : row) squares += v * v;
  return std::sqrt(squares);
}

inline auto plain_grad_scale(double scale) {
  return [scale](std::vector<double>& gradient) {
    for (double& g : gradient) g /= scale;
  };
}
inline auto plain_clip_value(double limit) {
  return [limit](std::vector<double>& gradient) {
    for (double& g : gradient) g = std::fmax(-limit, std::fmin(limit, g));
  };
}
inline auto plain_clip_norm(double most) {
  return [most](std::vector<double>& gradient) {
    const double factor = most / (norm_of(gradient) + 1e-6);
    if (factor >= 1.0) return;
    for (double& g : gradient) g *= factor;
  };
}

/// One step of a model (plain_training, say) on a row, with transforms around it.
template <class Model, class Rule>
void step_with(const plain_stages& transforms, Model& model, const Rule& rule, std::int64_t step,
               std::size_t row, std::vector<double> gradient) {
  if (transforms.leaves_out(row)) return;
  for (const auto& change : transforms.gradient) change(gradient);
  const std::size_t width = gradient.size(), first = row * width;
  const std::vector<double> before(model.weights.begin() + static_cast<std::ptrdiff_t>(first),
                                   model.weights.begin() + static_cast<std::ptrdiff_t>(first + width));
  model.step(rule, step, row, gradient);
  std::vector<double> after(width);
  for (std::size_t c = 0; c < width; ++c) {
    const double now = model.weights[first + c];
    after[c] = transforms.factors.empty() ? now : before[c] + transforms.factors[row] * (now - before[c]);
  }
  const double norm = norm_of(after);
  const double shrink = norm > transforms.max_norm ? transforms.max_norm / (norm + 1e-7) : 1.0;
  for (std::size_t c = 0; c < width; ++c) model.weights[first + c] = after[c] * shrink;
}

/// rowwise_adagrad as FBGEMM has it; `sums` is the rows' accumulator.
struct plain_rowwise_adagrad {
  std::size_t width;
  std::vector<double> weights, sums;

  template <class T>
  plain_rowwise_adagrad(const ferry::optim::rowwise_adagrad& rule, const std::vector<T>& start,
                        std::size_t row_width)
      : width(row_width),
        weights(start.begin(), start.end()),
        sums(start.size() / row_width, rule.initial_accumulator_value) {}

  void step(const ferry::optim::rowwise_adagrad& rule, std::int64_t, std::size_t row,
            const std::vector<double>& gradient) {
    std::vector<double> g(width);
    double squares = 0.0;
    for (std::size_t c = 0; c < width; ++c) {
      g[c] = (rule.maximize ? -gradient[c] : gradient[c]) + rule.weight_decay * weights[row * width + c];
      squares += g[c] * g[c];
    }
    sums[row] += squares / static_cast<double>(width);
    for (std::size_t c = 0; c < width; ++c)
      weights[row * width + c] -= rule.lr * g[c] / (std::sqrt(sums[row]) + rule.eps);
  }
};

}  // namespace ferry_test
