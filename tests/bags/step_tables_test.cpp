// SPDX-License-Identifier: Apache-2.0
#include "bags/table_kit.hpp"
#include "optim/step_kit.hpp"
#include "support/oracle.hpp"

#include <ferry/bags.hpp>

namespace ferry_test::step_tables_test {

template <class Rule, class T = float, class... Policies>
void check_rule(const Rule& rule, std::uint64_t seed, Policies... policies) {
  auto random = generator(seed);
  for (const auto& widths :
       {std::vector<std::size_t>{8}, std::vector<std::size_t>{4, 128, 16, 64},
        std::vector<std::size_t>{1, 3, 17, 2, 40, 129, 130}, std::vector<std::size_t>(26, 12)}) {
    const table_batch<T> input(random, widths, 9);
    const auto check = [&](auto... more) {
      check_same(stepped_one_by_one(rule, input, more..., policies...),
                 stepped_together(rule, input, more..., policies...));
    };
    check();
    check(ferry::pooling::sum{}, ferry::path::direct{});
    check(input.weights, ferry::pooling::sum{});
    check(input.weights);
  }
}

TEST_CASE("A step of many tables has the bits of a step for each") {
  check_rule(ferry::optim::sgd{.lr = 0.5}, 201);
  check_rule(ferry::optim::adam{.lr = 0.1}, 202);
}

TEST_CASE("A step of many tables by rules with fields of rows") {
  check_rule(ferry::optim::adagrad{.lr = 0.1}, 203);
  check_rule(ferry::optim::rowwise_adagrad{.lr = 0.1}, 204);
}

TEST_CASE("A step of many tables is Adam's on the sums of the shares of rows") {
  auto random = generator(205);
  const exec_space exec;
  const std::vector<std::size_t> widths{3, 33, 1, 130};
  const table_batch<double, std::int32_t, double> input(random, widths, 12);
  const ferry::optim::adam rule{.lr = 0.01};
  auto [tables, states] = tables_and_states<ferry::device_space, ferry::device_space>(rule, input);
  const auto grads = make<ferry::device_space>("grads", input.batch, input.width, input.grads);
  for (int s = 0; s < 3; ++s)
    ferry::step_bags(exec, rule, ferry::for_each_table(tables), states, input.ids, input.offsets, grads,
                     input.weights)
        .wait();
  for (std::size_t t = 0; t < widths.size(); ++t) {
    const std::size_t width = widths[t];
    plain_training<ferry::optim::adam, 2> expected(rule, input.values[t], width);
    std::map<std::size_t, std::vector<double>> sums;
    for (std::size_t b = 0; b < input.batch; ++b) {
      const std::size_t begin = input.offsets[t * input.batch + b],
                        end = input.offsets[t * input.batch + b + 1];
      for (std::size_t p = begin; p < end; ++p) {
        auto& sum = sums[static_cast<std::size_t>(input.ids[p])];
        sum.resize(width);
        for (std::size_t c = 0; c < width; ++c)
          sum[c] += static_cast<double>(input.weights[p]) *
                    input.grads[b * input.width + input.column(t) + c] / static_cast<double>(end - begin);
      }
    }
    for (std::int64_t step = 1; step <= 3; ++step)
      for (const auto& [row, sum] : sums) expected.step(rule, step, row, sum);
    CHECK(close(take(tables[t]), expected.weights, 64.0));
    CHECK(close(take(states[t].field("exp_avg")), expected.state[0], 64.0));
    CHECK(close(take(states[t].field("exp_avg_sq")), expected.state[1], 64.0));
  }
}

}  // namespace ferry_test::step_tables_test
