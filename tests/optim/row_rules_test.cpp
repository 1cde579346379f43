// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/test.hpp"

namespace ferry_test::row_rules_test {

// Rules that look at a row as a whole, against loops in double written from their papers.

/// A row in double: weights, up to two arrays of state, and the row's own number.
struct row_of_doubles {
  std::vector<double> weight, first, second;
  double row_moment = 0.0;
};

double signed_by(bool maximize, double g) { return maximize ? -g : g; }

void follow(const ferry::optim::rowwise_adagrad& rule, row_of_doubles& row,
            const std::vector<double>& gradient, int) {
  double sum = 0.0;
  std::vector<double> g;
  for (std::size_t c = 0; c < gradient.size(); ++c) {
    g.push_back(signed_by(rule.maximize, gradient[c]) + rule.weight_decay * row.weight[c]);
    sum += g[c] * g[c];
  }
  row.row_moment += sum / static_cast<double>(gradient.size());
  for (std::size_t c = 0; c < gradient.size(); ++c)
    row.weight[c] -= rule.lr * g[c] / (std::sqrt(row.row_moment) + rule.eps);
}

void follow(const ferry::optim::partial_rowwise_adam& rule, row_of_doubles& row,
            const std::vector<double>& gradient, int step) {
  double sum = 0.0;
  for (const double g : gradient) sum += g * g;
  row.row_moment =
      rule.betas[1] * row.row_moment + (1.0 - rule.betas[1]) * sum / static_cast<double>(gradient.size());
  const double deviation = std::sqrt(row.row_moment / (1.0 - std::pow(rule.betas[1], step))) + rule.eps;
  for (std::size_t c = 0; c < gradient.size(); ++c) {
    row.first[c] =
        rule.betas[0] * row.first[c] + (1.0 - rule.betas[0]) * signed_by(rule.maximize, gradient[c]);
    const double mean = row.first[c] / (1.0 - std::pow(rule.betas[0], step));
    row.weight[c] -= rule.lr * (mean / deviation + rule.weight_decay * row.weight[c]);
  }
}

void follow(const ferry::optim::lamb& rule, row_of_doubles& row, const std::vector<double>& gradient,
            int step) {
  std::vector<double> direction;
  double weights = 0.0, directions = 0.0;
  for (std::size_t c = 0; c < gradient.size(); ++c) {
    const double g = signed_by(rule.maximize, gradient[c]);
    row.first[c] = rule.betas[0] * row.first[c] + (1.0 - rule.betas[0]) * g;
    row.second[c] = rule.betas[1] * row.second[c] + (1.0 - rule.betas[1]) * g * g;
    const double mean = row.first[c] / (1.0 - std::pow(rule.betas[0], step));
    const double square = row.second[c] / (1.0 - std::pow(rule.betas[1], step));
    direction.push_back(mean / (std::sqrt(square) + rule.eps) + rule.weight_decay * row.weight[c]);
    weights += row.weight[c] * row.weight[c];
    directions += direction[c] * direction[c];
  }
  const double trust = weights > 0.0 && directions > 0.0 ? std::sqrt(weights) / std::sqrt(directions) : 1.0;
  for (std::size_t c = 0; c < gradient.size(); ++c) row.weight[c] -= rule.lr * trust * direction[c];
}

void follow(const ferry::optim::lars& rule, row_of_doubles& row, const std::vector<double>& gradient, int) {
  double weights = 0.0, gradients = 0.0;
  for (std::size_t c = 0; c < gradient.size(); ++c) {
    weights += row.weight[c] * row.weight[c];
    gradients += gradient[c] * gradient[c];
  }
  weights = std::sqrt(weights);
  gradients = std::sqrt(gradients);
  const double rate =
      weights > 0.0 && gradients > 0.0
          ? rule.trust_coefficient * weights / (gradients + rule.weight_decay * weights + rule.eps)
          : 1.0;
  for (std::size_t c = 0; c < gradient.size(); ++c) {
    const double g = signed_by(rule.maximize, gradient[c]) + rule.weight_decay * row.weight[c];
    row.first[c] = rule.momentum * row.first[c] + rule.lr * rate * g;
    row.weight[c] -= row.first[c];
  }
}

/// 20 steps with repeated rows; `initial` is that of the row's own number.
template <class T, class Space, class Rule, class Path>
void train(const Rule& rule, double initial, std::size_t width, Path path, std::uint64_t salt) {
  CAPTURE(Rule::name, width, path.name, Space::name);
  auto random = generator(salt * 1000 + width);
  const exec_space exec;
  const std::size_t rows = 11, n = 17;
  auto start = values<T>(random, rows * width);
  for (std::size_t c = 0; c < width; ++c) start[2 * width + c] = T(0);  // a row without a norm
  auto table = make<Space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  std::vector<row_of_doubles> expected(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    expected[r].weight.assign(start.begin() + static_cast<std::ptrdiff_t>(r * width),
                              start.begin() + static_cast<std::ptrdiff_t>((r + 1) * width));
    expected[r].first.assign(width, 0.0);
    expected[r].second.assign(width, 0.0);
    expected[r].row_moment = initial;
  }
  for (int step = 1; step <= 20; ++step) {
    const auto batch = random_batch<T>(random, n, rows, width);
    const auto device_grads = make<ferry::device_space>("grads", n, width, batch.values);
    if (step % 2 == 0)
      ferry::step(exec, rule, table, state, batch.rows, device_grads, path).wait();
    else
      ferry::step(exec, rule, table, state, ferry::make_plan(exec, batch.rows, rows), device_grads, path)
          .wait();
    for (const auto& [row, gradient] : summed(batch, width)) follow(rule, expected[row], gradient, step);
  }
  const double tolerance = std::is_same_v<T, double> ? 1e-12 : 2e-5;
  std::vector<double> weights, moments;
  for (const auto& row : expected) {
    weights.insert(weights.end(), row.weight.begin(), row.weight.end());
    moments.push_back(row.row_moment);
  }
  CHECK(farthest_apart(take(table), weights) < tolerance);
  if constexpr (decltype(state)::row_fields > 0)
    CHECK(farthest_apart(take(state.row_field_at(0)), moments) < tolerance);
}

/// Two of the rules in device_space and the others in pageable_space; in mapped_space those that have a number of the row.
template <class T, class Space, class Path>
void train_all(std::uint64_t salt, Path path) {
  constexpr bool on_device = !std::is_same_v<Space, ferry::pageable_space>;
  constexpr bool on_host = !std::is_same_v<Space, ferry::device_space> || std::is_same_v<T, double>;
  constexpr bool takes_norms = !std::is_same_v<Space, ferry::mapped_space>;
  // Around packets, warps of packets, the places of a sum and a host's tiles.
  for (const std::size_t width : {1u, 3u, 4u, 33u, 64u, 128u, 130u, 516u}) {
    if constexpr (on_device) {
      train<T, Space>(
          ferry::optim::rowwise_adagrad{.lr = 0.05, .weight_decay = 0.01, .initial_accumulator_value = 0.1},
          0.1, width, path, salt);
      if constexpr (takes_norms)
        train<T, Space>(ferry::optim::lamb{.lr = 0.01, .weight_decay = 0.05, .maximize = true}, 0.0, width,
                        path, salt + 2);
    }
    if constexpr (on_host) {
      train<T, Space>(
          ferry::optim::partial_rowwise_adam{.lr = 0.02, .betas = {0.8, 0.95}, .weight_decay = 0.1}, 0.0,
          width, path, salt + 1);
      if constexpr (takes_norms)
        train<T, Space>(
            ferry::optim::lars{.lr = 0.5, .momentum = 0.8, .weight_decay = 0.01, .trust_coefficient = 0.02},
            0.0, width, path, salt + 3);
    }
  }
}

TEMPLATE_TEST_CASE("rules that look at whole rows follow their formulas", "[optim][rows]",
                   ferry::device_space, ferry::mapped_space, ferry::pageable_space) {
  // A rule sees a row, whatever the path: two paths for each space.
  const auto train_on = [](auto path) { train_all<float, TestType>(301, path); };
  train_on(ferry::path::automatic{});
  if constexpr (std::is_same_v<TestType, ferry::pageable_space>) {
    train_on(ferry::path::staged{});
  } else if constexpr (std::is_same_v<TestType, ferry::mapped_space>) {
    train_on(ferry::path::ordered{});
  } else {
    train_on(ferry::path::direct{});
  }
}

TEST_CASE("rules that look at whole rows follow their formulas in double", "[optim][rows]") {
  train_all<double, ferry::device_space>(302, ferry::path::direct{});
}

TEST_CASE("sums over a row are added in the documented order", "[optim][rows]") {
  using order = ferry::kernels::row_sum_order;
  auto random = generator(311);
  std::uniform_real_distribution<float> any(-1.0f, 1.0f);
  float partial[order::partials];
  for (auto& value : partial) value = any(random);
  float lane[32];
  const auto add_lane = [&](int l) {
    lane[l] = (partial[4 * l] + partial[4 * l + 1]) + (partial[4 * l + 2] + partial[4 * l + 3]);
  };
  for (int l = 0; l < 32; ++l) add_lane(l);
  const auto tree = [&](auto self, int begin, int apart) -> float {
    return apart == 32 ? lane[begin] : self(self, begin, 2 * apart) + self(self, begin + apart, 2 * apart);
  };
  CHECK(order::total(partial, order::partials) == tree(tree, 0, 1));
  for (int level = order::partials - 1; level >= 0;
       --level) {  // the partials of shorter rows: the others are zeros
    partial[level] = 0.0f;
    add_lane(level / 4);
    CAPTURE(level);
    CHECK(order::total(partial, level) == tree(tree, 0, 1));
  }
}

TEST_CASE("a row's own state has a name and one number for each row", "[optim][rows]") {
  const ferry::tensor<ferry::half_t, ferry::pinned_space> table("weights", 6, 8);
  auto state = ferry::optim::make_state(ferry::optim::partial_rowwise_adam{}, table);
  CHECK(state.fields() == 1);
  CHECK(state.row_fields == 1);
  CHECK(state.field("exp_avg").width() == 8);
  CHECK(state.field("exp_avg_sq").rows() == 6);
  CHECK(state.field("exp_avg_sq").width() == 1);
  CHECK(state.row_field_at(0).label() == "weights::exp_avg_sq");
  CHECK_THROWS_MATCHES(state.field("sum"), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("no active state 'sum'")));
  const ferry::optim::rowwise_adagrad adagrad{.initial_accumulator_value = 0.5};
  auto sums = ferry::optim::make_state(adagrad, table);
  CHECK(sums.fields() == 0);
  CHECK(take(sums.field("sum")) == std::vector<float>(6, 0.5f));
}

// The rules that torch.optim does not have, against loops written from their papers.

struct element {
  double weight, first, second;
};

/// Lion, algorithm 2, line by line.
void follow_paper(const ferry::optim::lion& rule, element& cell, double gradient) {
  const double g = rule.maximize ? -gradient : gradient;
  const double c = rule.betas[0] * cell.first + (1.0 - rule.betas[0]) * g;
  const double sign = c > 0.0 ? 1.0 : c < 0.0 ? -1.0 : 0.0;
  cell.weight = cell.weight - rule.lr * (sign + rule.weight_decay * cell.weight);
  cell.first = rule.betas[1] * cell.first + (1.0 - rule.betas[1]) * g;
}

/// FTRL-Proximal, algorithm 1, but that the weight is kept instead of made anew before each gradient.
void follow_paper(const ferry::optim::ftrl& rule, element& cell, double gradient) {
  const double g = rule.maximize ? -gradient : gradient;
  const double sigma = (std::sqrt(cell.first + g * g) - std::sqrt(cell.first)) / rule.lr;
  cell.second = cell.second + g - sigma * cell.weight;
  cell.first = cell.first + g * g;
  if (std::fabs(cell.second) <= rule.l1)
    cell.weight = 0.0;
  else
    cell.weight = -(cell.second - (cell.second > 0.0 ? rule.l1 : -rule.l1)) /
                  ((rule.beta + std::sqrt(cell.first)) / rule.lr + rule.l2);
}

template <class Rule>
void check(const Rule& rule, double initial, std::uint64_t salt) {
  auto random = generator(salt);
  const exec_space exec;
  const std::size_t rows = 9, width = 5, n = 4;
  const auto start = values<double>(random, rows * width);
  auto table = make<ferry::mapped_space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  std::vector<element> expected;
  for (const double weight : start) expected.push_back({weight, initial, 0.0});
  for (int step = 0; step < 50; ++step) {
    const auto ids = unique_indices<std::int64_t>(random, n, rows);
    const auto gradients = values<double>(random, n * width);
    ferry::step(exec, rule, table, state, ids, make<ferry::device_space>("grads", n, width, gradients),
                ferry::path::direct{})
        .wait();
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t c = 0; c < width; ++c)
        follow_paper(rule, expected[static_cast<std::size_t>(ids[p]) * width + c], gradients[p * width + c]);
  }
  std::vector<double> weights;
  for (const element& cell : expected) weights.push_back(cell.weight);
  CHECK(farthest_apart(take(table), weights) < 1e-12);
}

TEST_CASE("lion follows its paper", "[optim][lion]") {
  check(ferry::optim::lion{}, 0.0, 201);
  check(ferry::optim::lion{.lr = 0.02, .betas = {0.5, 0.8}, .weight_decay = 0.3, .maximize = true}, 0.0, 202);
}

TEST_CASE("ftrl follows its paper", "[optim][ftrl]") {
  check(ferry::optim::ftrl{}, 0.0, 203);
  check(ferry::optim::ftrl{.lr = 0.5, .beta = 0.1, .l1 = 3.0, .l2 = 0.2, .initial_accumulator_value = 0.1},
        0.1, 204);
  check(ferry::optim::ftrl{.beta = 0.0, .l1 = 40.0, .maximize = true}, 0.0, 205);
}

TEST_CASE("options that no rule takes are refused by name", "[optim][errors]") {
  const auto refused = [](const auto& rule) { CHECK_THROWS_AS(rule.check(), ferry::invalid_argument); };
  refused(ferry::optim::adamw{.betas = {0.9, 1.0}});
  refused(ferry::optim::sparse_adam{.eps = -1.0});
  refused(ferry::optim::adadelta{.rho = 1.5});
  refused(ferry::optim::adamax{.lr = -1.0});
  refused(ferry::optim::nadam{.momentum_decay = -1.0});
  refused(ferry::optim::rmsprop{.alpha = -0.5});
  refused(ferry::optim::rprop{.etas = {0.5, 0.9}});
  refused(ferry::optim::rprop{.step_sizes = {1.0, 0.5}});
  refused(ferry::optim::asgd{.t0 = -1.0});
  refused(ferry::optim::lion{.weight_decay = std::nan("")});
  refused(ferry::optim::ftrl{.lr = 0.0});
}

}  // namespace ferry_test::row_rules_test
