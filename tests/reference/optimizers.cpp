// SPDX-License-Identifier: Apache-2.0
#include "reference/optimizers.hpp"

#include <cmath>

namespace ferry_test::reference {

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
