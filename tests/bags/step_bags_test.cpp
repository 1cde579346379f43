// SPDX-License-Identifier: Apache-2.0
#include "bags/step_kit.hpp"
#include "support/matrix.hpp"

#include <ferry/bags.hpp>

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test::step_bags_test {

namespace {

constexpr ferry::optim::adam adam{.lr = 0.05};

/// Two steps by pooling without and with a plan; `more` are the further array, if any, and policies.
template <class Pooling, class T, class V, class Rule, class... More>
void check_step(const bag_batch<T, V>& given, const std::vector<T>& expected, const Rule& rule,
                const More&... more) {
  const exec_space exec;
  CAPTURE(Pooling::name, given.width);
  const auto grads = make<ferry::device_space>("grads", given.bags, given.width, given.grads);
  for (const bool planned : {false, true}) {
    auto table = make<ferry::device_space>("table", given.rows, given.width, given.values);
    auto state = ferry::optim::make_state(rule, table);
    const auto plan = ferry::make_plan(exec, given.which, given.rows);
    for (int s = 0; s < 2; ++s) {
      if (planned)
        ferry::step_bags(exec, rule, table, state, plan, given.offsets, grads, more..., Pooling{}).wait();
      else
        ferry::step_bags(exec, rule, table, state, given.which, given.offsets, grads, more..., Pooling{})
            .wait();
    }
    CHECK(same_bits(take(table), expected));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("step_bags gives the bits of step on a gradient for every position", "", float, double,
                   ferry::half_t) {
  using compute = std::conditional_t<std::is_same_v<TestType, double>, double, float>;
  auto random = generator(31);
  for (const std::size_t width : {1UL, 3UL, 4UL, 17UL, 64UL, 129UL}) {
    const bag_batch<TestType> given(random, 40, width, 31);
    check_step<ferry::pooling::sum>(given,
                                    stepped_by_positions(adam, given.values, given.rows, width, given.which,
                                                         expanded<compute>(given.grads, width, given.which,
                                                                           given.offsets, "pooling::sum")),
                                    adam);
    check_step<ferry::pooling::mean>(given,
                                     stepped_by_positions(adam, given.values, given.rows, width, given.which,
                                                          expanded<compute>(given.grads, width, given.which,
                                                                            given.offsets, "pooling::mean")),
                                     adam);
    const auto weights = uneven_values<float>(random, given.which.size());
    check_step<ferry::pooling::sum>(
        given,
        stepped_by_positions(
            adam, given.values, given.rows, width, given.which,
            expanded<compute>(given.grads, width, given.which, given.offsets, "pooling::sum", weights)),
        adam, weights);
  }
}

TEST_CASE("Maxima hand their gradients to their positions, as given or found") {
  auto random = generator(32);
  const exec_space exec;
  for (const std::size_t width : {1UL, 6UL, 20UL}) {
    const bag_batch<float> given(random, 30, width, 25);
    const auto chosen =
        pooled<float, float>(given.values, width, given.which, given.offsets, "pooling::max").positions;
    const auto gradients =
        expanded<float>(given.grads, width, given.which, given.offsets, "pooling::max", no_weights{}, chosen);
    const auto expected = stepped_by_positions(adam, given.values, given.rows, width, given.which, gradients);
    ferry::tensor<std::int32_t, ferry::device_space> maxima("maxima", given.bags, width);
    put(maxima, std::vector<std::int32_t>(chosen.begin(), chosen.end()));
    check_step<ferry::pooling::max>(given, expected, adam, maxima);

    // Found anew: one step, because the maxima of the second are those of another table.
    auto table = make<ferry::device_space>("table", given.rows, width, given.values);
    auto other = make<ferry::device_space>("table", given.rows, width, given.values);
    auto state = ferry::optim::make_state(adam, table);
    auto other_state = ferry::optim::make_state(adam, table);
    const auto grads = make<ferry::device_space>("grads", given.bags, width, given.grads);
    const auto rows = make<ferry::device_space>("grads", given.which.size(), width, gradients);
    ferry::step_bags(exec, adam, table, state, given.which, given.offsets, grads, ferry::pooling::max{})
        .wait();
    ferry::step(exec, adam, other, other_state, given.which, rows).wait();
    CHECK(same_bits(take(table), take(other)));
  }
}

TEST_CASE("Rules that look at whole rows, counted rows and transforms step on bags") {
  auto random = generator(33);
  const bag_batch<float> given(random, 40, 24, 31);
  const auto by_mean = expanded<float>(given.grads, 24, given.which, given.offsets, "pooling::mean");
  const auto check = [&](const auto& rule, auto... policies) {
    check_step<ferry::pooling::mean>(
        given, stepped_by_positions(rule, given.values, given.rows, 24, given.which, by_mean, policies...),
        rule);
  };
  check(ferry::optim::rowwise_adagrad{.lr = 0.1});
  check(ferry::optim::sgd{.lr = 0.1, .momentum = 0.9});
  check(ferry::optim::chain{ferry::optim::adam{}, ferry::optim::clip_norm{0.5}});

  const exec_space exec;
  auto table = make<ferry::device_space>("table", given.rows, 24, given.values);
  auto state = ferry::optim::make_state(adam, table, ferry::step_count::per_row{});
  auto other = make<ferry::device_space>("table", given.rows, 24, given.values);
  auto other_state = ferry::optim::make_state(adam, other, ferry::step_count::per_row{});
  const auto grads = make<ferry::device_space>("grads", given.bags, 24, given.grads);
  const auto rows = make<ferry::device_space>("grads", given.which.size(), 24, by_mean);
  for (int s = 0; s < 2; ++s) {
    ferry::step_bags(exec, adam, table, state, given.which, given.offsets, grads,
                     ferry::step_count::per_row{})
        .wait();
    ferry::step(exec, adam, other, other_state, given.which, rows, ferry::step_count::per_row{}).wait();
  }
  CHECK(same_bits(take(table), take(other)));
}

TEST_CASE("The gradients of weights are the products of gradients and rows before the step") {
  auto random = generator(34);
  const exec_space exec;
  for (const std::size_t width : {1UL, 7UL, 16UL, 200UL}) {
    CAPTURE(width);
    const bag_batch<float> given(random, 30, width, 25);
    auto which = given.which;
    for (std::size_t p = 0; p < which.size(); p += 7) which[p] = -1;
    const auto weights = uneven_values<float>(random, which.size());
    const auto check = [&](auto pooling) {
      CAPTURE(pooling.name);
      const auto shares = expanded<double>(given.grads, width, which, given.offsets, pooling.name);
      std::vector<double> expected(which.size());
      for (std::size_t p = 0; p < which.size(); ++p)
        for (std::size_t c = 0; c < width && which[p] >= 0; ++c)
          expected[p] += shares[p * width + c] *
                         static_cast<double>(given.values[static_cast<std::size_t>(which[p]) * width + c]);
      auto table = make<ferry::device_space>("table", given.rows, width, given.values);
      auto state = ferry::optim::make_state(adam, table);
      const auto grads = make<ferry::device_space>("grads", given.bags, width, given.grads);
      ferry::tensor<float, ferry::device_space> found("weight_grads", which.size());
      put(found, std::vector<float>(which.size(), 77.0F));
      ferry::step_bags(exec, adam, table, state, which, given.offsets, grads, weights, found, pooling,
                       ferry::bounds::skip{})
          .wait();
      CHECK(close(take(found), expected, 2.0 * static_cast<double>(width)));
      const auto by_positions = stepped_by_positions(
          adam, given.values, given.rows, width, which,
          expanded<float>(given.grads, width, which, given.offsets, pooling.name, weights),
          ferry::bounds::skip{});
      ferry::step_bags(exec, adam, table, state, which, given.offsets, grads, weights, pooling,
                       ferry::bounds::skip{})
          .wait();
      CHECK(same_bits(take(table), by_positions));
    };
    check(ferry::pooling::sum{});
    check(ferry::pooling::mean{});
  }
}

TEST_CASE("Bags of a fixed number of positions, of none, and no bags at all can be stepped") {
  auto random = generator(35);
  const exec_space exec;
  const std::size_t rows = 20, width = 8, bags = 9;
  const auto values = uneven_values<float>(random, rows * width);
  const auto grads = uneven_values<float>(random, bags * width);
  for (const int hotness : {0, 1, 4}) {
    std::vector<std::size_t> offsets;
    for (std::size_t b = 0; b <= bags; ++b) offsets.push_back(b * static_cast<std::size_t>(hotness));
    const auto which = indices<std::int64_t>(random, offsets.back(), rows);
    auto table = make<ferry::device_space>("table", rows, width, values);
    auto state = ferry::optim::make_state(adam, table);
    const auto given = make<ferry::device_space>("grads", bags, width, grads);
    for (int s = 0; s < 2; ++s) ferry::step_bags(exec, adam, table, state, which, hotness, given).wait();
    CHECK(same_bits(take(table),
                    stepped_by_positions(adam, values, rows, width, which,
                                         expanded<float>(grads, width, which, offsets, "pooling::mean"))));
  }
  auto table = make<ferry::device_space>("table", rows, width, values);
  auto state = ferry::optim::make_state(adam, table);
  const ferry::tensor<float, ferry::device_space> none("grads", 0, width);
  ferry::step_bags(exec, adam, table, state, std::vector<int>{}, std::vector<int>{0}, none).wait();
  CHECK(same_bits(take(table), values));
}

}  // namespace ferry_test::step_bags_test
