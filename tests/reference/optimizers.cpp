// SPDX-License-Identifier: Apache-2.0
#include "reference/optimizers.hpp"

#include <cmath>

namespace ferry_test::reference {

void step_row(const sgd_options& options, trained_table& table, std::size_t row, const double* gradient,
              long step) {
  for (std::size_t j = 0; j < table.width; ++j) {
    const std::size_t i = row * table.width + j;
    double g = options.maximize ? -gradient[j] : gradient[j];
    if (options.weight_decay != 0.0) g = g + options.weight_decay * table.weight[i];
    if (options.momentum != 0.0) {
      // torch clones the gradient at the first step; ferry counts steps for the whole table, so a row that is
      // met later starts from a buffer of zeros.
      if (step == 1)
        table.first[i] = g;
      else
        table.first[i] = options.momentum * table.first[i] + (1.0 - options.dampening) * g;
      if (options.nesterov)
        g = g + options.momentum * table.first[i];
      else
        g = table.first[i];
    }
    table.weight[i] = table.weight[i] - options.lr * g;
  }
}

void step_row(const adagrad_options& options, trained_table& table, std::size_t row, const double* gradient,
              long step) {
  const double rate = options.lr / (1.0 + static_cast<double>(step - 1) * options.lr_decay);
  for (std::size_t j = 0; j < table.width; ++j) {
    const std::size_t i = row * table.width + j;
    double g = options.maximize ? -gradient[j] : gradient[j];
    if (options.weight_decay != 0.0) g = g + options.weight_decay * table.weight[i];
    table.first[i] = table.first[i] + g * g;
    table.weight[i] = table.weight[i] - rate * g / (std::sqrt(table.first[i]) + options.eps);
  }
}

void step_row(const adam_options& options, trained_table& table, std::size_t row, const double* gradient,
              long step) {
  double power1 = 1.0, power2 = 1.0;
  for (long s = 0; s < step; ++s) {
    power1 *= options.beta1;
    power2 *= options.beta2;
  }
  for (std::size_t j = 0; j < table.width; ++j) {
    const std::size_t i = row * table.width + j;
    double g = options.maximize ? -gradient[j] : gradient[j];
    if (options.weight_decay != 0.0) g = g + options.weight_decay * table.weight[i];
    table.first[i] = options.beta1 * table.first[i] + (1.0 - options.beta1) * g;
    table.second[i] = options.beta2 * table.second[i] + (1.0 - options.beta2) * g * g;
    const double momentum = table.first[i] / (1.0 - power1);
    const double deviation = std::sqrt(table.second[i] / (1.0 - power2)) + options.eps;
    table.weight[i] = table.weight[i] - options.lr * momentum / deviation;
  }
}

}  // namespace ferry_test::reference
