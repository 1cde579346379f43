// SPDX-License-Identifier: Apache-2.0
#include "bags/step_kit.hpp"
#include "support/matrix.hpp"

#include <ferry/bags.hpp>

namespace ferry_test::step_bags_spaces_test {

constexpr ferry::optim::adam adam{.lr = 0.05};

using step_spaces = ferry_test::zipped<decltype(ferry_test::spaces), decltype(ferry_test::spaces), 0, 1>;

TEMPLATE_LIST_TEST_CASE("Tables and gradients of a step on bags may lie in any space", "", step_spaces) {
  using space = at<0, TestType>;
  using grads_space = at<1, TestType>;
  auto random = generator(41);
  const exec_space exec;
  const bag_batch<float> input(random, 40, 20, 31);
  const auto weights = uneven_values<float>(random, input.ids.size());
  const auto grads = make<grads_space>("grads", input.bags, input.width, input.grads);
  const auto check = [&](auto path) {
    CAPTURE(path.name);
    const auto run = [&](auto pooling, const auto& of_positions, const auto&... more) {
      CAPTURE(pooling.name);
      std::vector<std::int64_t> chosen;
      if constexpr (pooling.selects)
        chosen = pooled<float, float>(input.values, input.width, input.ids, input.offsets, "pooling::max")
                     .positions;
      auto table = make<space>("table", input.rows, input.width, input.values);
      auto state = ferry::optim::make_state(adam, table);
      ferry::step_bags(exec, adam, table, state, input.ids, input.offsets, grads, more..., pooling, path)
          .wait();

      auto second = make<ferry::device_space>("table", input.rows, input.width, input.values);
      auto other_state = ferry::optim::make_state(adam, second);
      const auto rows =
          make<ferry::device_space>("grads", input.ids.size(), input.width,
                                    expanded<float>(input.grads, input.width, input.ids, input.offsets,
                                                    pooling.name, of_positions, chosen));
      ferry::step(exec, adam, second, other_state, input.ids, rows).wait();
      CHECK(same_bits(take(table), take(second)));
      for (int f = 0; f < 2; ++f) CHECK(same_bits(take(state.field(f)), take(other_state.field(f))));
    };
    run(ferry::pooling::mean{}, no_weights{});
    if constexpr (std::is_same_v<grads_space, space>)
      run(ferry::pooling::mean{}, weights, weights);
    else
      run(ferry::pooling::max{}, no_weights{});
  };
  check(ferry::path::automatic{});
  if (direct_runs<space, grads_space>()) check(ferry::path::ordered{});
  if constexpr (staged_compiles<space, grads_space>) check(ferry::path::staged{});
}

}  // namespace ferry_test::step_bags_spaces_test
