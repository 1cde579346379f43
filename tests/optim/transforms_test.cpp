// SPDX-License-Identifier: Apache-2.0
#include "optim/transform_kit.hpp"
#include "support/paths.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

/// Several transforms around a rule, in two orders, in every host space and on every path.
namespace ferry_test::transforms_test {

namespace {

constexpr std::size_t rows = 17, n = 23;

struct row_numbers {
  std::vector<float> factors;
  std::vector<std::uint8_t> mask;

  explicit row_numbers(std::mt19937_64& random) : factors(rows), mask(rows) {
    for (std::size_t row = 0; row < rows; ++row) {
      factors[row] = static_cast<float>(random() % 9) / 4.0f;  // 0 to 2
      mask[row] = static_cast<std::uint8_t>(row % 3 == 1 ? 1u + random() % 255u : 0u);
    }
  }
};

/// Takes eight steps of `chain` and of a model with plain transforms, and compares the results.
template <class Staged, class Model, class Table, class State, class Path, class Count>
void train(std::mt19937_64& random, Staged& chain, const plain_stages& transforms, Model& model, Table& table,
           State& state, std::size_t width, Path path, Count count) {
  const exec_space exec;
  const auto start = take(table);
  std::vector<std::int64_t> counts(rows, 0);
  for (int step = 1; step <= 8; ++step) {
    if (step == 5) chain.rule.lr *= 0.25;
    const auto batch = random_batch<double>(random, n, rows, width);
    const auto grads = make<ferry::device_space>("grads", n, width, batch.values);
    if (step % 2 == 0)
      ferry::step(exec, chain, table, state, ferry::make_plan(exec, batch.rows, rows), grads, path, count)
          .wait();
    else
      ferry::step(exec, chain, table, state, batch.rows, grads, path, count).wait();
    for (const auto& [row, gradient] : summed(batch, width)) {
      if (!transforms.leaves_out(row)) ++counts[row];
      step_with(transforms, model, chain.rule, Count::counts_rows ? counts[row] : step, row, gradient);
    }
  }
  const auto now = take(table);
  CHECK(farthest_apart(now, model.weights) < 1e-12);
  for (std::size_t i = 0; i < now.size(); ++i)
    if (transforms.leaves_out(i / width) && now[i] != start[i])
      FAIL_CHECK("frozen row " << i / width << " moved");
  if constexpr (Count::counts_rows) {
    const auto noted = take(state.row_steps());
    for (std::size_t row = 0; row < rows; ++row) CHECK(noted[row] == static_cast<std::uint32_t>(counts[row]));
  }
  CHECK(state.steps() == 8);
}

template <class Space, class Path>
void scaled_then_clipped(Path path, std::size_t width) {
  CAPTURE(Space::name, path.name, width);
  auto random = generator(400 + width);
  const row_numbers numbers(random);
  const auto factors = make<ferry::mapped_space>("factors", numbers.factors);
  const auto mask = make<ferry::mapped_space>("mask", numbers.mask);
  ferry::optim::chain chain{ferry::optim::adam{.lr = 0.1},    ferry::optim::grad_scale{8.0},
                            ferry::optim::clip_norm{2.0},     ferry::optim::clip_value{0.4},
                            ferry::optim::row_rates{factors}, ferry::optim::frozen_rows{mask},
                            ferry::optim::max_norm{20.0}};
  const plain_stages plain{{plain_grad_scale(8.0), plain_clip_norm(2.0), plain_clip_value(0.4)},
                           {numbers.factors.begin(), numbers.factors.end()},
                           numbers.mask,
                           20.0};
  const auto start = values<double>(random, rows * width);
  auto table = make<Space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(chain, table);
  plain_training<ferry::optim::adam, 2> model(chain.rule, start, width);
  train(random, chain, plain, model, table, state, width, path, ferry::step_count::per_row{});
  for (int f = 0; f < 2; ++f)
    CHECK(farthest_apart(take(state.field(f)), model.state[static_cast<std::size_t>(f)]) < 1e-12);
}

template <class Space, class Path>
void clipped_then_scaled(Path path, std::size_t width) {
  CAPTURE(Space::name, path.name, width);
  auto random = generator(500 + width);
  const row_numbers numbers(random);
  const std::vector<double> wide(numbers.factors.begin(), numbers.factors.end());
  const auto factors = make<ferry::mapped_space>("factors", wide);
  ferry::optim::chain chain{ferry::optim::sgd{.lr = 0.1, .momentum = 0.5}, ferry::optim::clip_value{6.0},
                            ferry::optim::clip_norm{9.0}, ferry::optim::grad_scale{4.0},
                            ferry::optim::row_rates{factors}};
  const plain_stages plain{
      {plain_clip_value(6.0), plain_clip_norm(9.0), plain_grad_scale(4.0)}, wide, {}, INFINITY};
  const auto start = values<double>(random, rows * width);
  auto table = make<Space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(chain, table);
  plain_training<ferry::optim::sgd, 1> model(chain.rule, start, width);
  train(random, chain, plain, model, table, state, width, path, ferry::step_count::global{});
  CHECK(farthest_apart(take(state.field(0)), model.state[0]) < 1e-12);
}

template <class Space, class Path>
void around_a_rule_of_rows(Path path, std::size_t width) {
  CAPTURE(Space::name, path.name, width);
  auto random = generator(600 + width);
  const row_numbers numbers(random);
  const auto factors = make<ferry::mapped_space>("factors", numbers.factors);
  const auto mask = make<ferry::mapped_space>("mask", numbers.mask);
  ferry::optim::chain chain{ferry::optim::rowwise_adagrad{.lr = 0.2, .weight_decay = 0.01},
                            ferry::optim::frozen_rows{mask},
                            ferry::optim::grad_scale{2.0},
                            ferry::optim::clip_norm{5.0},
                            ferry::optim::row_rates{factors},
                            ferry::optim::max_norm{15.0}};
  const plain_stages plain{{plain_grad_scale(2.0), plain_clip_norm(5.0)},
                           {numbers.factors.begin(), numbers.factors.end()},
                           numbers.mask,
                           15.0};
  const auto start = values<double>(random, rows * width);
  auto table = make<Space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(chain, table);
  plain_rowwise_adagrad model(chain.rule, start, width);
  train(random, chain, plain, model, table, state, width, path, ferry::step_count::per_row{});
  CHECK(farthest_apart(take(state.field("sum")), model.sums) < 1e-12);
}

}  // namespace

// Around packets, tiles and the places of a sum.
TEMPLATE_TEST_CASE("transforms before and after a rule, in their order", "[optim][transforms]",
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  for_each_path<TestType, ferry::device_space, work::changes>([](auto path) {
    for (const std::size_t width : {1u, 3u, 4u, 35u, 128u, 131u}) {
      // All of them where every path is one of its own, each in one more space.
      constexpr bool mapped = std::is_same_v<TestType, ferry::mapped_space>;
      if constexpr (mapped || std::is_same_v<TestType, ferry::pinned_space>)
        scaled_then_clipped<TestType>(path, width);
      if constexpr (mapped) clipped_then_scaled<TestType>(path, width);
      if constexpr (mapped || std::is_same_v<TestType, ferry::pageable_space>)
        around_a_rule_of_rows<TestType>(path, width);
    }
  });
}

}  // namespace ferry_test::transforms_test
