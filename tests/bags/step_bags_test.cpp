// SPDX-License-Identifier: Apache-2.0
#include "bags/step_kit.hpp"
#include "support/matrix.hpp"

#include <ferry/bags.hpp>

namespace ferry_test::step_bags_test {

constexpr ferry::optim::adam adam{.lr = 0.05};

/// Two steps by pooling without and with a plan; `more` are the further array, if any, and policies.
template <class Pooling, class T, class V, class Rule, class... More>
void check_step(const bag_batch<T, V>& input, const std::vector<T>& expected, const Rule& rule,
                const More&... more) {
  const exec_space exec;
  CAPTURE(Pooling::name, input.width);
  const auto grads = make<ferry::device_space>("grads", input.bags, input.width, input.grads);
  for (const bool planned : {false, true}) {
    auto table = make<ferry::device_space>("table", input.rows, input.width, input.values);
    auto state = ferry::optim::make_state(rule, table);
    const auto plan = ferry::make_plan(exec, input.ids, input.rows);
    for (int s = 0; s < 2; ++s) {
      if (planned)
        ferry::step_bags(exec, rule, table, state, plan, input.offsets, grads, more..., Pooling{}).wait();
      else
        ferry::step_bags(exec, rule, table, state, input.ids, input.offsets, grads, more..., Pooling{})
            .wait();
    }
    CHECK(same_bits(take(table), expected));
  }
}

TEMPLATE_TEST_CASE("step_bags gives the bits of step on a gradient for every position", "", float, double,
                   ferry::half_t) {
  using compute = std::conditional_t<std::is_same_v<TestType, double>, double, float>;
  auto random = generator(31);
  for (const std::size_t width : {1UL, 3UL, 4UL, 17UL, 64UL, 129UL}) {
    const bag_batch<TestType> input(random, 40, width, 31);
    check_step<ferry::pooling::sum>(
        input,
        stepped_by_positions(adam, input.values, input.rows, width, input.ids,
                             expanded<compute>(input.grads, width, input.ids, input.offsets, "pooling::sum")),
        adam);
    check_step<ferry::pooling::mean>(input,
                                     stepped_by_positions(adam, input.values, input.rows, width, input.ids,
                                                          expanded<compute>(input.grads, width, input.ids,
                                                                            input.offsets, "pooling::mean")),
                                     adam);
    const auto weights = uneven_values<float>(random, input.ids.size());
    check_step<ferry::pooling::sum>(
        input,
        stepped_by_positions(
            adam, input.values, input.rows, width, input.ids,
            expanded<compute>(input.grads, width, input.ids, input.offsets, "pooling::sum", weights)),
        adam, weights);
  }
}

TEST_CASE("Maxima hand their gradients to their positions, as given or found") {
  auto random = generator(32);
  const exec_space exec;
  for (const std::size_t width : {1UL, 6UL, 20UL}) {
    const bag_batch<float> input(random, 30, width, 25);
    const auto chosen =
        pooled<float, float>(input.values, width, input.ids, input.offsets, "pooling::max").positions;
    const auto gradients =
        expanded<float>(input.grads, width, input.ids, input.offsets, "pooling::max", no_weights{}, chosen);
    const auto expected = stepped_by_positions(adam, input.values, input.rows, width, input.ids, gradients);
    ferry::tensor<std::int32_t, ferry::device_space> maxima("maxima", input.bags, width);
    put(maxima, std::vector<std::int32_t>(chosen.begin(), chosen.end()));
    check_step<ferry::pooling::max>(input, expected, adam, maxima);

    // Found anew: one step, because the maxima of the second are those of another table.
    auto table = make<ferry::device_space>("table", input.rows, width, input.values);
    auto second = make<ferry::device_space>("table", input.rows, width, input.values);
    auto state = ferry::optim::make_state(adam, table);
    auto other_state = ferry::optim::make_state(adam, table);
    const auto grads = make<ferry::device_space>("grads", input.bags, width, input.grads);
    const auto rows = make<ferry::device_space>("grads", input.ids.size(), width, gradients);
    ferry::step_bags(exec, adam, table, state, input.ids, input.offsets, grads, ferry::pooling::max{}).wait();
    ferry::step(exec, adam, second, other_state, input.ids, rows).wait();
    CHECK(same_bits(take(table), take(second)));
  }
}

TEST_CASE("Rules that look at whole rows, counted rows and transforms step on bags") {
  auto random = generator(33);
  const bag_batch<float> input(random, 40, 24, 31);
  const auto by_mean = expanded<float>(input.grads, 24, input.ids, input.offsets, "pooling::mean");
  const auto check = [&](const auto& rule, auto... policies) {
    check_step<ferry::pooling::mean>(
        input, stepped_by_positions(rule, input.values, input.rows, 24, input.ids, by_mean, policies...),
        rule);
  };
  check(ferry::optim::rowwise_adagrad{.lr = 0.1});
  check(ferry::optim::sgd{.lr = 0.1, .momentum = 0.9});
  check(ferry::optim::chain{ferry::optim::adam{}, ferry::optim::clip_norm{0.5}});

  const exec_space exec;
  auto table = make<ferry::device_space>("table", input.rows, 24, input.values);
  auto state = ferry::optim::make_state(adam, table, ferry::step_count::per_row{});
  auto second = make<ferry::device_space>("table", input.rows, 24, input.values);
  auto other_state = ferry::optim::make_state(adam, second, ferry::step_count::per_row{});
  const auto grads = make<ferry::device_space>("grads", input.bags, 24, input.grads);
  const auto rows = make<ferry::device_space>("grads", input.ids.size(), 24, by_mean);
  for (int s = 0; s < 2; ++s) {
    ferry::step_bags(exec, adam, table, state, input.ids, input.offsets, grads, ferry::step_count::per_row{})
        .wait();
    ferry::step(exec, adam, second, other_state, input.ids, rows, ferry::step_count::per_row{}).wait();
  }
  CHECK(same_bits(take(table), take(second)));
}

TEST_CASE("The gradients of weights are the products of gradients and rows before the step") {
  auto random = generator(34);
  const exec_space exec;
  for (const std::size_t width : {1UL, 7UL, 16UL, 200UL}) {
    CAPTURE(width);
    const bag_batch<float> input(random, 30, width, 25);
    auto ids = input.ids;
    for (std::size_t p = 0; p < ids.size(); p += 7) ids[p] = -1;
    const auto weights = uneven_values<float>(random, ids.size());
    const auto check = [&](auto pooling) {
      CAPTURE(pooling.name);
      const auto shares = expanded<double>(input.grads, width, ids, input.offsets, pooling.name);
      std::vector<double> expected(ids.size());
      for (std::size_t p = 0; p < ids.size(); ++p)
        for (std::size_t c = 0; c < width && ids[p] >= 0; ++c)
          expected[p] += shares[p * width + c] *
                         static_cast<double>(input.values[static_cast<std::size_t>(ids[p]) * width + c]);
      auto table = make<ferry::device_space>("table", input.rows, width, input.values);
      auto state = ferry::optim::make_state(adam, table);
      const auto grads = make<ferry::device_space>("grads", input.bags, width, input.grads);
      ferry::tensor<float, ferry::device_space> weight_grads("weight_grads", ids.size());
      put(weight_grads, std::vector<float>(ids.size(), 77.0F));
      ferry::step_bags(exec, adam, table, state, ids, input.offsets, grads, weights, weight_grads, pooling,
                       ferry::bounds::skip{})
          .wait();
      CHECK(close(take(weight_grads), expected, 2.0 * static_cast<double>(width)));
      const auto by_positions =
          stepped_by_positions(adam, input.values, input.rows, width, ids,
                               expanded<float>(input.grads, width, ids, input.offsets, pooling.name, weights),
                               ferry::bounds::skip{});
      ferry::step_bags(exec, adam, table, state, ids, input.offsets, grads, weights, pooling,
                       ferry::bounds::skip{})
          .wait();
      CHECK(same_bits(take(table), by_positions));
    };
    check(ferry::pooling::sum{});
    check(ferry::pooling::mean{});
  }
}

TEST_CASE("means over bags of any length, of which positions are left out, are stepped on") {
  auto random = generator(37);
  const exec_space exec;
  constexpr std::size_t rows = 60, width = 9;
  std::vector<std::size_t> offsets{0};
  for (const std::size_t length : {0UL, 31UL, 32UL, 33UL, 0UL, 64UL, 5000UL, 1UL, 2UL, 3UL, 40UL, 0UL})
    offsets.push_back(offsets.back() + length);
  const std::size_t bags = offsets.size() - 1;
  auto ids = indices<std::int64_t>(random, offsets.back(), rows);
  for (auto& id : ids)
    if (random() % 4 == 0) id = -1;
  std::fill_n(ids.begin() + 31, 32, -1);  // a bag without a row
  const auto values = uneven_values<float>(random, rows * width);
  const auto gradients = uneven_values<float>(random, bags * width);
  auto table = make<ferry::device_space>("table", rows, width, values);
  auto state = ferry::optim::make_state(adam, table);
  const auto grads = make<ferry::device_space>("grads", bags, width, gradients);
  for (int step = 0; step < 2; ++step)
    ferry::step_bags(exec, adam, table, state, ids, offsets, grads, ferry::pooling::mean{},
                     ferry::bounds::skip{})
        .wait();
  CHECK(same_bits(take(table),
                  stepped_by_positions(adam, values, rows, width, ids,
                                       expanded<float>(gradients, width, ids, offsets, "pooling::mean"),
                                       ferry::bounds::skip{})));
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
    const auto ids = indices<std::int64_t>(random, offsets.back(), rows);
    auto table = make<ferry::device_space>("table", rows, width, values);
    auto state = ferry::optim::make_state(adam, table);
    const auto device_grads = make<ferry::device_space>("grads", bags, width, grads);
    for (int s = 0; s < 2; ++s) ferry::step_bags(exec, adam, table, state, ids, hotness, device_grads).wait();
    CHECK(same_bits(take(table),
                    stepped_by_positions(adam, values, rows, width, ids,
                                         expanded<float>(grads, width, ids, offsets, "pooling::mean"))));
  }
  auto table = make<ferry::device_space>("table", rows, width, values);
  auto state = ferry::optim::make_state(adam, table);
  const ferry::tensor<float, ferry::device_space> none("grads", 0, width);
  ferry::step_bags(exec, adam, table, state, std::vector<int>{}, std::vector<int>{0}, none).wait();
  CHECK(same_bits(take(table), values));
}

}  // namespace ferry_test::step_bags_test
