// SPDX-License-Identifier: Apache-2.0
#include "optim/int8_kit.hpp"
#include "support/oracle.hpp"
#include "support/paths.hpp"

#include <ferry/int8.hpp>

#include <catch2/catch_template_test_macros.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

/// Steps on tables of 8-bit rows: the bytes of every record against a decoding, the rule in float, and an encoding by
/// docs/semantics.md.
namespace ferry_test::int8_step_test {

namespace {

constexpr std::size_t rows = 21, n = 17;

/// Four steps, every other one by a plan; all bytes of records and state must be those of the loops.
template <class Space, class Rule, int Fields, class Path, class Rounding>
void train(const Rule& rule, std::size_t width, Path path, Rounding rounding) {
  CAPTURE(Rule::name, Space::name, path.name, width, Rounding::name);
  auto random = generator(1200 + width);
  const exec_space exec;
  auto start = random_records(random, rows, width);
  ferry::rowwise_int8_tensor<Space> table("codes", rows, width);
  REQUIRE(table.row_bytes() == start.row_bytes);
  put(table.records(), start.bytes);
  auto state = ferry::optim::make_state(rule, table);
  STATIC_CHECK(std::is_same_v<typename decltype(state)::value_type, float>);
  state.set_seed(random());
  plain_int8_training<Rule, Fields> expected(rule, std::move(start));
  for (std::int64_t step = 1; step <= 4; ++step) {
    gradient_batch<float> batch = random_batch<float>(random, n, rows - 3, width);
    if (step == 3) batch.rows = unique_indices<std::int64_t>(random, n, rows);
    for (auto& g : batch.values) g *= 0.0173f;
    const auto grads = make<ferry::device_space>("grads", n, width, batch.values);
    if (step == 3)
      ferry::step(exec, rule, table, state, batch.rows, grads, path, rounding,
                  ferry::duplicates::assume_unique{})
          .wait();
    else if (step % 2 == 0)
      ferry::step(exec, rule, table, state, ferry::make_plan(exec, batch.rows, rows), grads, path, rounding)
          .wait();
    else
      ferry::step(exec, rule, table, state, batch.rows, grads, path, rounding).wait();
    for (const auto& [row, gradient] : summed_in_order(batch, width)) {
      const auto values = expected.stepped(rule, step, row, gradient);
      if constexpr (Rounding::is_random) {
        const ferry::kernels::step_randomness bits{state.seed(), static_cast<std::uint64_t>(step)};
        const auto index = static_cast<std::int64_t>(row);
        expected.table.encode(row, values, [&](double place, std::size_t c) {
          const auto column = static_cast<std::int64_t>(c);
          const double below = std::floor(place);
          const double draw = bits.draw(index, column / 4).word[column % 4] * 0x1p-32;
          return draw < place - below ? below + 1.0 : below;
        });
      } else {
        expected.table.encode(row, values, to_nearest);
      }
    }
  }
  CHECK(take(table.records()) == expected.table.bytes);
  for (int f = 0; f < Fields; ++f) CHECK(take(state.field(f)) == expected.state[static_cast<std::size_t>(f)]);
}

}  // namespace

// Rows named by no step, their padding included, are part of the comparison.
TEMPLATE_TEST_CASE("a step on 8-bit rows decodes, updates and encodes", "[optim][int8]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  for_each_path<TestType, ferry::device_space, work::changes>([](auto path) {
    for (const std::size_t width : {1u, 4u, 30u, 128u, 131u}) {
      [[maybe_unused]] const ferry::rounding::nearest nearest;
      [[maybe_unused]] const ferry::rounding::stochastic stochastic;
      // Both roundings with and without state, in device and in host memory.
      if constexpr (std::is_same_v<TestType, ferry::mapped_space> ||
                    std::is_same_v<TestType, ferry::pageable_space>)
        train<TestType, ferry::optim::sgd, 0>({.lr = 0.3, .weight_decay = 0.01}, width, path, nearest);
      if constexpr (std::is_same_v<TestType, ferry::device_space>)
        train<TestType, ferry::optim::sgd, 0>({.lr = 0.3}, width, path, stochastic);
      if constexpr (std::is_same_v<TestType, ferry::device_space> ||
                    std::is_same_v<TestType, ferry::pinned_space>)
        train<TestType, ferry::optim::adam, 2>({.lr = 0.02}, width, path, nearest);
      if constexpr (std::is_same_v<TestType, ferry::mapped_space>)
        train<TestType, ferry::optim::adam, 2>({.lr = 0.02}, width, path, stochastic);
    }
  });
}

}  // namespace ferry_test::int8_step_test
