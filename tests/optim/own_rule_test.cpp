// SPDX-License-Identifier: Apache-2.0
#include "../../docs/examples/own_rule/normalized_sgd.hpp"
#include "../../docs/examples/own_rule/sign_only.hpp"
#include "../../docs/examples/own_rule/signum.hpp"
#include "optim/step_kit.hpp"
#include "support/test.hpp"

/// The rules of docs/own_rule.md, written outside the library, on every path and with duplicates, against plain loops.
namespace ferry_test::own_rule_test {

namespace optim = ferry::optim;

/// The library's own are what the concepts ask for.
template <class... Rules>
inline constexpr bool are_scheduled = (ferry::ScheduledOptimizer<Rules> && ...);
template <class... Rules>
inline constexpr bool are_by_rows = (ferry::RowOptimizer<Rules> && ...);
static_assert(are_scheduled<optim::adagrad, optim::adam, optim::adamax, optim::adamw, optim::asgd,
                            optim::lamb, optim::nadam, optim::partial_rowwise_adam, optim::sparse_adam>);
static_assert(are_by_rows<optim::lamb, optim::lars, optim::partial_rowwise_adam, optim::rowwise_adagrad>);
static_assert(ferry::Optimizer<optim::adadelta> && ferry::Optimizer<optim::ftrl> &&
              ferry::Optimizer<optim::lion> && ferry::Optimizer<optim::rmsprop> &&
              ferry::Optimizer<optim::rprop> && ferry::LinearOptimizer<optim::sgd>);
static_assert(ferry::Transform<optim::clip_norm> && ferry::Transform<optim::clip_value> &&
              ferry::Transform<optim::grad_scale> && ferry::Transform<optim::max_norm> &&
              ferry::Transform<optim::row_rates<float, ferry::pageable_space>> &&
              ferry::Transform<optim::frozen_rows<std::uint8_t, ferry::pageable_space>>);

constexpr std::size_t rows = 13, width = 35, n = 21;

/// Ten steps by ferry on a path, next to follow(weights, row, gradient).
template <class Space, class Rule, class Path, class Follow, class Look>
void train(const Rule& rule, Path path, const Follow& follow, const Look& look) {
  CAPTURE(Space::name, path.name);
  auto random = generator(17);
  const exec_space exec;
  auto expected = values<double>(random, rows * width);
  auto table = make<Space>("weights", rows, width, expected);
  auto state = ferry::optim::make_state(rule, table);
  for (int step = 0; step < 10; ++step) {
    const auto batch = random_batch<double>(random, n, rows, width);
    ferry::step(exec, rule, table, state, batch.rows,
                make<ferry::device_space>("grads", n, width, batch.values), path)
        .wait();
    for (const auto& [row, gradient] : summed(batch, width))
      follow(expected.data() + row * width, row, gradient);
  }
  CHECK(farthest_apart(take(table), expected) < 1e-12);
  look(state);
}

TEMPLATE_TEST_CASE("a rule of one's own", "[optim][own]", ferry::device_space, ferry::mapped_space,
                   ferry::pinned_space, ferry::pageable_space) {
  const own::signum rule{.lr = 0.03, .momentum = 0.7};
  for_each_path<TestType, ferry::device_space, work::changes>([&](auto path) {
    std::vector<double> momentum(rows * width);
    train<TestType>(
        rule, path,
        [&](double* weights, std::size_t row, const std::vector<double>& gradient) {
          for (std::size_t c = 0; c < width; ++c) {
            double& b = momentum[row * width + c];
            b = rule.momentum * b + (1.0 - rule.momentum) * gradient[c];
            weights[c] -= rule.lr * (b > 0.0 ? 1.0 : b < 0.0 ? -1.0 : 0.0);
          }
        },
        [&](const auto& state) {
          CHECK(farthest_apart(take(state.field("momentum_buffer")), momentum) < 1e-12);
        });
  });
  CHECK_THROWS_AS((own::signum{.momentum = 1.0}.check()), ferry::invalid_argument);
}

TEMPLATE_TEST_CASE("a rule of one's own that looks at whole rows", "[optim][own]", ferry::device_space,
                   ferry::mapped_space, ferry::pinned_space, ferry::pageable_space) {
  const own::normalized_sgd rule{.lr = 0.2};
  for_each_path<TestType, ferry::device_space, work::changes>([&](auto path) {
    std::vector<double> steps(rows);
    train<TestType>(
        rule, path,
        [&](double* weights, std::size_t row, const std::vector<double>& gradient) {
          double norm = 0.0;
          for (const double g : gradient) norm += g * g;
          norm = std::sqrt(norm);
          for (std::size_t c = 0; c < width; ++c) weights[c] -= rule.lr * gradient[c] / (norm + rule.eps);
          steps[row] += 1.0;
        },
        [&](const auto& state) { CHECK(take(state.row_field_at(0)) == steps); });
  });
}

TEST_CASE("a transform of one's own", "[optim][own]") {
  using space = ferry::mapped_space;
  const exec_space exec;
  auto random = generator(18);
  auto start = values<float>(random, rows * width);
  const std::vector<int> ids{3, 0, 12};
  const auto gradients = values<float>(random, ids.size() * width);
  const auto grads = make<ferry::device_space>("grads", ids.size(), width, gradients);
  const ferry::optim::chain stepped{ferry::optim::sgd{.lr = 0.25}, own::sign_only{}};
  for_each_path<space, ferry::device_space, work::changes>([&](auto path) {
    CAPTURE(path.name);
    auto expected = start;
    auto table = make<space>("weights", rows, width, start);
    auto state = ferry::optim::make_state(stepped, table);
    ferry::step(exec, stepped, table, state, ids, grads, path).wait();
    for (std::size_t p = 0; p < ids.size(); ++p)
      for (std::size_t c = 0; c < width; ++c) {
        const float g = gradients[p * width + c];
        expected[static_cast<std::size_t>(ids[p]) * width + c] -= g > 0.0f ? 0.25f : g < 0.0f ? -0.25f : 0.0f;
      }
    CHECK(take(table) == expected);
  });
}

}  // namespace ferry_test::own_rule_test
