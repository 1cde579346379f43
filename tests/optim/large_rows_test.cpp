// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

/// Norms of rows whose squares overflow or underflow the type of the step, against loops in long double.
namespace ferry_test::large_rows_test {

namespace optim = ferry::optim;
using wide = long double;
using numbers = std::vector<wide>;

constexpr std::size_t rows = 3;

/// One row in long double: weights, momentum, and the number of the row.
struct plain_row {
  numbers weight, momentum, largest;  ///< `largest`: of each weight so far, which its rounding errors follow
  wide row_moment = 0;
};

template <class T>
constexpr wide most = std::numeric_limits<T>::max();

wide norm(const numbers& list) {
  wide sum = 0;
  for (const wide x : list) sum += x * x;
  return std::sqrt(sum);
}
wide mean_square(const numbers& list) { return norm(list) * norm(list) / static_cast<wide>(list.size()); }

template <class T>
void follow(const optim::rowwise_adagrad& rule, plain_row& row, const numbers& g, int) {
  const wide moment = row.row_moment + mean_square(g);
  for (std::size_t c = 0; c < g.size(); ++c)
    row.weight[c] -= static_cast<wide>(rule.lr) * g[c] / (std::sqrt(moment) + static_cast<wide>(rule.eps));
  row.row_moment = std::min(moment, most<T>);
}
template <class T>
void follow(const optim::partial_rowwise_adam& rule, plain_row& row, const numbers& g, int step) {
  const wide b1 = rule.betas[0], b2 = rule.betas[1];
  const wide moment = b2 * row.row_moment + (1 - b2) * mean_square(g);
  const wide root = std::sqrt(moment / (1 - std::pow(b2, static_cast<wide>(step))));
  for (std::size_t c = 0; c < g.size(); ++c) {
    row.momentum[c] = b1 * row.momentum[c] + (1 - b1) * g[c];
    row.weight[c] -= static_cast<wide>(rule.lr) * row.momentum[c] /
                     (1 - std::pow(b1, static_cast<wide>(step))) / (root + static_cast<wide>(rule.eps));
  }
  row.row_moment = std::min(moment, most<T>);
}
template <class T>
void follow(const optim::lars& rule, plain_row& row, const numbers& g, int) {
  const wide weights = norm(row.weight), gradients = norm(g), decay = rule.weight_decay;
  const wide rate = weights > 0 && gradients > 0
                        ? static_cast<wide>(rule.trust_coefficient) * weights /
                              (gradients + decay * weights + static_cast<wide>(rule.eps))
                        : 1;
  for (std::size_t c = 0; c < g.size(); ++c) {
    row.momentum[c] = static_cast<wide>(rule.momentum) * row.momentum[c] +
                      static_cast<wide>(rule.lr) * rate * (g[c] + decay * row.weight[c]);
    row.weight[c] -= row.momentum[c];
  }
}
/// The first step, whose direction is about the sign of the gradient.
template <class T>
void follow(const optim::lamb& rule, plain_row& row, const numbers& g, int) {
  numbers direction(g.size());
  for (std::size_t c = 0; c < g.size(); ++c)
    direction[c] = g[c] / (std::abs(g[c]) + static_cast<wide>(rule.eps)) +
                   static_cast<wide>(rule.weight_decay) * row.weight[c];
  const wide weights = norm(row.weight), directions = norm(direction);
  const wide ratio = weights > 0 && directions > 0 ? weights / directions : 1;
  for (std::size_t c = 0; c < g.size(); ++c)
    row.weight[c] -= static_cast<wide>(rule.lr) * ratio * direction[c];
}
template <class T>
void follow(const optim::chain<optim::sgd, optim::clip_norm, optim::max_norm>& chain, plain_row& row,
            const numbers& g, int) {
  const wide factor = std::min<wide>(
      1, static_cast<wide>(std::get<0>(chain.transforms).max_norm) / (norm(g) + static_cast<wide>(1e-6)));
  for (std::size_t c = 0; c < g.size(); ++c)
    row.weight[c] -= static_cast<wide>(chain.rule.lr) * factor * g[c];
  const wide limit = std::get<1>(chain.transforms).limit, length = norm(row.weight);
  if (length > limit)
    for (wide& weight : row.weight) weight *= limit / (length + static_cast<wide>(1e-7));
}

/// Rows of these magnitudes; the last one has weights and gradients of zero.
template <class T>
std::vector<T> random_rows(std::mt19937_64& random, std::size_t width, double magnitude) {
  std::uniform_real_distribution<double> any(0.25, 1.0);
  std::vector<T> made(rows * width);
  for (std::size_t i = 0; i < (rows - 1) * width; ++i)
    made[i] = static_cast<T>(any(random) * magnitude * (random() % 2 == 0 ? 1 : -1));
  return made;
}

/// Steps with gradients of the given magnitudes, compared after each.
template <class T, class Rule>
void train(const Rule& rule, std::size_t width, double weights, const std::vector<double>& gradients) {
  auto random = generator(width);
  const exec_space exec;
  const auto start = random_rows<T>(random, width, weights);
  auto table = make<ferry::device_space>("weights", rows, width, start);
  auto state = optim::make_state(rule, table);
  std::vector<plain_row> expected(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    expected[r].weight.assign(&start[r * width], &start[r * width] + width);
    expected[r].momentum.assign(width, 0);
    expected[r].largest.assign(width, 0);
  }
  int step = 0;
  for (const double magnitude : gradients) {
    ++step;
    CAPTURE(width, weights, magnitude, step);
    const auto values = random_rows<T>(random, width, magnitude);
    const auto grads = make<ferry::device_space>("grads", rows, width, values);
    ferry::step(exec, rule, table, state, std::vector<std::int32_t>{0, 1, 2}, grads, ferry::path::direct{})
        .wait();
    const auto now = take(table);
    for (std::size_t r = 0; r < rows; ++r) {
      plain_row& row = expected[r];
      const numbers before = row.weight;
      follow<T>(rule, row, numbers(&values[r * width], &values[r * width] + width), step);
      for (std::size_t c = 0; c < width; ++c) {
        wide& scale = row.largest[c];
        scale = std::max({scale, std::abs(before[c]), std::abs(row.weight[c] - before[c])});
        const wide apart = std::abs(static_cast<wide>(now[r * width + c]) - row.weight[c]);
        if (!(apart <= (sizeof(T) == 4 ? 2e-5L : 1e-12L) * scale + std::numeric_limits<T>::denorm_min() * 64))
          FAIL("row " << r << ", column " << c << ": " << now[r * width + c] << ", not "
                      << static_cast<double>(row.weight[c]));
      }
    }
    if constexpr (decltype(state)::row_fields != 0) {
      const auto row_field = take(state.row_field_at(0));
      for (std::size_t r = 0; r < rows; ++r)
        CHECK(std::abs(static_cast<wide>(row_field[r]) - expected[r].row_moment) <=
              2e-5L * expected[r].row_moment + 1e-44L);
    }
  }
}

/// Packed rows of up to 128 elements stay in registers on a device; longer rows are walked over again.
constexpr std::size_t widths[] = {1, 2, 4, 7, 64, 300};

/// A magnitude for T: 10^exponent in float, about its eighth power in double.
template <class T>
double power_of_ten(int exponent) {
  return std::pow(10.0, sizeof(T) == 4 ? exponent : 8 * exponent);
}

TEMPLATE_TEST_CASE("the mean square of a row's gradient may exceed its type", "[optim][large_rows]", float,
                   double) {
  const auto large = power_of_ten<TestType>;
  for (const std::size_t width : widths) {
    const std::vector<double> gradients{1.0, large(18), large(20), 1.0, large(37), large(19), large(-20)};
    train<TestType>(optim::rowwise_adagrad{.lr = 0.5, .eps = 1e-8}, width, 1.0, gradients);
    train<TestType>(optim::partial_rowwise_adam{.lr = 0.5}, width, 1.0, gradients);
    train<TestType>(optim::rowwise_adagrad{.lr = 0.5}, width, 1.0, {large(38)});
  }
}

TEMPLATE_TEST_CASE("norms of rows may exceed their type", "[optim][large_rows]", float, double) {
  const auto large = power_of_ten<TestType>;
  for (const std::size_t width : widths)
    for (const int weights : {-25, -10, 0, 18, 20, 36}) {
      for (const double decay : {0.0, 0.125}) {
        train<TestType>(optim::lamb{.lr = 0.25, .weight_decay = decay}, width, large(weights), {0.5});
        for (const int gradients : {-25, -10, 0, 18, 20, 37})
          if (std::abs(gradients - weights) < 38)  // the ratio of the norms is a number
            train<TestType>(optim::lars{.lr = 0.25, .momentum = 0.5, .weight_decay = decay}, width,
                            large(weights), {large(gradients)});
      }
    }
}

TEMPLATE_TEST_CASE("limits of norms hold for rows whose squares overflow", "[optim][large_rows]", float,
                   double) {
  const auto large = power_of_ten<TestType>;
  for (const std::size_t width : widths)
    for (const int weights : {-25, 0, 18, 20, 38})
      for (const int gradients : {-25, 0, 18, 20, 38})
        for (const double limit : {1.0, large(15)})
          train<TestType>(optim::chain{optim::sgd{.lr = 0.25}, optim::clip_norm{1.0}, optim::max_norm{limit}},
                          width, large(weights), {large(gradients)});
  // A limit below the root of the smallest square.
  train<TestType>(optim::chain{optim::sgd{.lr = 0.25}, optim::clip_norm{1.0}, optim::max_norm{0.0}}, 4,
                  large(-25), {0.0});
}

TEST_CASE("infinite gradients and weights stay what they were", "[optim][large_rows]") {
  const exec_space exec;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  auto table = make<ferry::device_space>("weights", 1, 2, std::vector<float>{1.0f, 2.0f});
  const auto grads = make<ferry::device_space>("grads", 1, 2, std::vector<float>{infinity, 1.0f});
  const optim::rowwise_adagrad rule{.lr = 1.0};
  auto state = optim::make_state(rule, table);
  ferry::step(exec, rule, table, state, std::vector<std::int32_t>{0}, grads).wait();
  CHECK(std::isnan(take(table)[0]));
  CHECK(take(table)[1] == 2.0f);
  CHECK(take(state.row_field_at(0))[0] == infinity);
}

}  // namespace ferry_test::large_rows_test
