// SPDX-License-Identifier: Apache-2.0
#include "quantized_training.hpp"
#include "support/test.hpp"

#include <ferry/quantized.hpp>

/// Steps on quantized tables: every byte of codes, scales and state against plain loops.
namespace ferry_test::quantized_step_test {

namespace quantization = ferry::quantization;
using by_rows = quantization::per_row<quantization::e4m3>;
using nearest = ferry::rounding::nearest;
using stochastic = ferry::rounding::stochastic;

constexpr std::size_t rows = 19, n = 15;

/// Four steps: by indices, by a plan, without duplicates, and on all rows.
template <class Q, class Space, class ScaleSpace, class Rule, int Fields, class Rounding, class Path>
void train(const Rule& rule, std::size_t width, Path path) {
  CAPTURE(Q::name, Rule::name, Space::name, ScaleSpace::name, path.name, width, Rounding::name);
  auto random = generator(1300 + width);
  const exec_space exec;
  plain_quantized_training<Q, Rule, Fields> expected(rule, random, rows, width);
  auto table = table_of<Q, Space, ScaleSpace>(expected.table);
  auto state = ferry::optim::make_state(rule, table);
  STATIC_CHECK(std::is_same_v<typename decltype(state)::value_type, float>);
  STATIC_CHECK(std::is_same_v<typename decltype(state)::memory_space, Space>);
  state.set_seed(random());
  for (std::int64_t step = 1; step <= 4; ++step) {
    gradient_batch<float> batch = random_batch<float>(random, step == 4 ? rows : n, rows - 3, width);
    if (step == 3) batch.rows = unique_indices<std::int64_t>(random, n, rows);
    if (step == 4)
      for (std::size_t row = 0; row < rows; ++row) batch.rows[row] = static_cast<std::int64_t>(row);
    for (auto& g : batch.values) g *= 0.0173f;
    const auto grads = make<ferry::device_space>("grads", batch.rows.size(), width, batch.values);
    if (step == 1)
      ferry::step(exec, rule, table, state, batch.rows, grads, path, Rounding{}).wait();
    else if (step == 2)
      ferry::step(exec, rule, table, state, ferry::make_plan(exec, batch.rows, rows), grads, path, Rounding{})
          .wait();
    else if (step == 3)
      ferry::step(exec, rule, table, state, batch.rows, grads, path, Rounding{},
                  ferry::duplicates::assume_unique{})
          .wait();
    else
      ferry::step(exec, rule, table, state, grads, path, Rounding{}).wait();
    for (const auto& [row, gradient] : summed_in_order(batch, width))
      expected.step(rule, step, row, gradient, draws_of<Rounding>(state.seed(), step, row));
  }
  const auto bytes = bytes_of(table);
  CHECK(bytes.codes == expected.table.codes);
  CHECK(bytes.scales == expected.table.scales);
  CHECK(bytes.tensor_scale == expected.table.tensor_scale);
  for (int f = 0; f < Fields; ++f) CHECK(take(state.field(f)) == expected.state[static_cast<std::size_t>(f)]);
}

template <class Q>
void train_quantization() {
  using ferry::device_space, ferry::mapped_space;
  using adam = ferry::optim::adam;
  using sgd = ferry::optim::sgd;
  using scale_space = std::conditional_t<Q::in_records, mapped_space, device_space>;
  const ferry::path::direct path;
  for (const std::size_t width : {32u, 96u, 256u}) {
    train<Q, mapped_space, scale_space, sgd, 0, nearest>({.lr = 15.0, .weight_decay = 0.01}, width, path);
    train<Q, mapped_space, scale_space, adam, 2, stochastic>({.lr = 0.2}, width, path);
  }
  if constexpr (Q::block == 0)
    for (const std::size_t width : {1u, 4u, 30u, 131u})
      train<Q, mapped_space, scale_space, adam, 2, stochastic>({.lr = 0.2}, width, path);
}

TEST_CASE("a step on quantized rows decodes, updates and encodes", "[optim][quantized]") {
  train_quantization<quantization::e4m3>();
  train_quantization<quantization::e5m2>();
  train_quantization<by_rows>();
  train_quantization<quantization::mxfp8>();
  train_quantization<quantization::mxfp8_e5m2>();
  train_quantization<quantization::mxfp4>();
  train_quantization<quantization::nvfp4>();
  train_quantization<quantization::rowwise_int8>();
}

TEMPLATE_TEST_CASE("a step on quantized rows of every space and path", "[optim][quantized]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  for_each_path<TestType, ferry::device_space, work::changes>([](auto path) {
    train<quantization::mxfp8, TestType, TestType, ferry::optim::adam, 2, nearest>({.lr = 0.2}, 64, path);
    for (const std::size_t width : {4u, 131u})
      train<quantization::rowwise_int8, TestType, TestType, ferry::optim::adam, 2, nearest>({.lr = 0.02},
                                                                                            width, path);
  });
}

TEST_CASE("a step on quantized rows takes transforms", "[optim][quantized]") {
  using Q = quantization::mxfp8;
  const ferry::optim::sgd rule{.lr = 0.5};
  const ferry::optim::chain clipped{rule, ferry::optim::clip_norm{1e6}, ferry::optim::clip_value{0.125}};
  const exec_space exec;
  for (const std::size_t width : {32u, 256u}) {
    auto random = generator(1350 + width);
    plain_quantized_training<Q, ferry::optim::sgd, 0> expected(rule, random, rows, width);
    auto table = table_of<Q, ferry::mapped_space>(expected.table);
    auto state = ferry::optim::make_state(rule, table);
    const auto ids = unique_indices<std::int64_t>(random, n, rows);
    const auto gradients = values<float>(random, n * width);
    ferry::step(exec, clipped, table, state, ids, make<ferry::device_space>("grads", n, width, gradients))
        .wait();
    for (std::size_t p = 0; p < n; ++p) {
      std::vector<float> gradient;
      for (std::size_t c = 0; c < width; ++c)
        gradient.push_back(std::clamp(gradients[p * width + c], -0.125f, 0.125f));
      expected.step(rule, 1, static_cast<std::size_t>(ids[p]), gradient, {});
    }
    CHECK(same(bytes_of(table), expected.table));
  }
}

}  // namespace ferry_test::quantized_step_test
