// SPDX-License-Identifier: Apache-2.0
#include "bags/bags.hpp"
#include "cache/cache_kit.hpp"

#include <ferry/bags.hpp>
#include <ferry/cache/gather_bags.hpp>
#include <ferry/cache/step_bags.hpp>

/// Bags of rows of cached tables.
namespace ferry_test::bags_test {

namespace {

template <class Pooling, class... Policies>
void random_bags(std::uint64_t salt, Policies... policies) {
  CAPTURE(salt);
  constexpr std::size_t rows = 160, width = 12;
  auto random = generator(salt);
  const exec_space exec;
  const ferry::optim::adagrad rule{.lr = 0.1};
  const auto start = values<float>(random, rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  auto twin = make<ferry::mapped_space>("twin", rows, width, start);
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 20, .refresh = 2});
  auto state = ferry::optim::make_state(rule, hot);
  auto twin_state = ferry::optim::make_state(rule, twin);
  for (int call = 0; call < 12; ++call) {
    const auto offsets = as_offsets<std::int64_t>(bag_offsets(random, 11, 9));
    const auto n = static_cast<std::size_t>(offsets.back());
    const auto ids = skewed<std::int64_t>(random, n, rows, 5, 15);
    const auto plan = ferry::make_plan(exec, ids, rows);
    const std::size_t bags = offsets.size() - 1;
    auto mine = make<ferry::device_space>("mine", bags, width, std::vector<float>(bags * width, -7.0f));
    auto twin_out = make<ferry::device_space>("its", bags, width, std::vector<float>(bags * width, -8.0f));
    auto grads = make<ferry::device_space>("grads", bags, width, values<float>(random, bags * width));
    const Pooling pooling;
    if (call % 2 == 0) {
      ferry::gather_bags(exec, hot, ids, offsets, mine, pooling, policies...).wait();
      ferry::gather_bags(exec, twin, ids, offsets, twin_out, pooling, policies...).wait();
      ferry::step_bags(exec, rule, hot, state, ids, offsets, grads, pooling, policies...).wait();
      ferry::step_bags(exec, rule, twin, twin_state, ids, offsets, grads, pooling, policies...).wait();
    } else {
      ferry::gather_bags(exec, hot, plan, offsets, mine, pooling).wait();
      ferry::gather_bags(exec, twin, plan, offsets, twin_out, pooling).wait();
      ferry::step_bags(exec, rule, hot, state, plan, offsets, grads, pooling).wait();
      ferry::step_bags(exec, rule, twin, twin_state, plan, offsets, grads, pooling).wait();
    }
    REQUIRE(same_bits(take(mine), take(twin_out)));
    if constexpr (!Pooling::selects) {
      auto weights = make<ferry::device_space>("weights", values<float>(random, n));
      ferry::gather_bags(exec, hot, ids, offsets, mine, weights, pooling).wait();
      ferry::gather_bags(exec, twin, ids, offsets, twin_out, weights, pooling).wait();
      ferry::step_bags(exec, rule, hot, state, plan, offsets, grads, weights, pooling).wait();
      ferry::step_bags(exec, rule, twin, twin_state, plan, offsets, grads, weights, pooling).wait();
    } else {
      ferry::tensor<std::int64_t, ferry::device_space> positions("at", bags, width),
          twin_positions("there", bags, width);
      ferry::gather_bags(exec, hot, ids, offsets, mine, positions, pooling).wait();
      ferry::gather_bags(exec, twin, ids, offsets, twin_out, twin_positions, pooling).wait();
      CHECK(take(positions) == take(twin_positions));
    }
    REQUIRE(same_bits(take(mine), take(twin_out)));
  }
  CHECK(hot.statistics().hits > 0);
  hot.flush(exec).wait();
  CHECK(same_bits(take(table), take(twin)));
  CHECK(same_bits(take(state.field(0)), take(twin_state.field(0))));
}

}  // namespace

TEST_CASE("bags of rows of a cached table", "[cache][bags]") {
  random_bags<ferry::pooling::sum>(1);
  random_bags<ferry::pooling::mean>(2, ferry::bounds::skip{});
  random_bags<ferry::pooling::max>(3);
}

}  // namespace ferry_test::bags_test
