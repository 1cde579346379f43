// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

/// torch.optim's Adam as its documentation writes it, in double, one row at a time. Rows that are not stepped keep weights and
/// state; `step` counts from 1 for all rows alike.
namespace ferry_test::reference {

struct adam_options {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.0;
  bool maximize = false;
};

/// A table with its two state arrays.
struct trained_table {
  std::size_t rows = 0, width = 0;
  std::vector<double> weight, first, second;

  trained_table(std::size_t row_count, std::size_t row_width, double initial_state = 0.0)
      : rows(row_count),
        width(row_width),
        weight(row_count * row_width),
        first(row_count * row_width, initial_state),
        second(row_count * row_width) {}
};

void step_row(const adam_options& options, trained_table& table, std::size_t row, const double* gradient,
              long step);

}  // namespace ferry_test::reference
