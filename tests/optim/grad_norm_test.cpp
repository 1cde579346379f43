// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

/// The norm of all gradients together, its limit, and the loop with a scaled loss.
namespace ferry_test::grad_norm_test {

using Catch::Matchers::WithinRel;
namespace optim = ferry::optim;

template <class T>
std::vector<T> normal_values(std::mt19937_64& random, std::size_t count) {
  std::normal_distribution<double> any(0, 3);
  std::vector<T> result(count);
  for (auto& value : result) value = ferry::convert<T>(any(random));
  return result;
}
template <class T>
double squares(const std::vector<T>& values) {
  long double sum = 0;
  for (const T& value : values) sum += std::pow(static_cast<long double>(ferry::convert<double>(value)), 2);
  return static_cast<double>(sum);
}
/// Rows of equal index combined first.
double combined_squares(const std::vector<std::int32_t>& indices, const std::vector<float>& grads,
                        std::size_t width) {
  std::map<std::int32_t, std::vector<double>> rows;
  for (std::size_t p = 0; p < indices.size(); ++p) {
    auto& row = rows[indices[p]];
    row.resize(width);
    for (std::size_t j = 0; j < width; ++j) row[j] += static_cast<double>(grads[p * width + j]);
  }
  double sum = 0;
  for (const auto& row : rows) sum += squares(row.second);
  return sum;
}

TEST_CASE("the norm of several gradients is the root of all their squares", "[grad_norm]") {
  const exec_space exec;
  auto random = generator();
  for (const std::size_t n : {0u, 1u, 31u, 32u, 33u, 2047u, 2048u, 2049u, 70001u}) {
    const auto a = normal_values<float>(random, n * 3);
    const auto b = normal_values<double>(random, n);
    const auto c = normal_values<ferry::bhalf_t>(random, 5);
    const auto first = make<ferry::device_space>("a", n, 3, a);
    const auto second = make<ferry::mapped_space>("b", b);
    const auto third = make<ferry::pinned_space>("c", c);
    CAPTURE(n);
    CHECK_THAT(optim::grad_norm(exec, first, second, third).wait(),
               WithinRel(std::sqrt(squares(a) + squares(b) + squares(c)), 1e-13));
  }
}

TEST_CASE("gradients of one row are combined before the norm is taken", "[grad_norm]") {
  const exec_space exec;
  auto random = generator();
  const std::size_t n = 3001, rows = 200, width = 7;
  const auto named = indices<std::int32_t>(random, n, rows);
  const auto values = normal_values<float>(random, n * width);
  const auto index = make<ferry::device_space>("indices", named);
  auto grads = make<ferry::device_space>("grads", n, width, values);
  const auto bias = normal_values<float>(random, 11);
  auto dense = make<ferry::device_space>("bias", bias);
  const auto plan = ferry::make_plan(exec, index, rows);
  const double expected = std::sqrt(combined_squares(named, values, width) + squares(bias));
  CHECK_THAT(optim::grad_norm(exec, optim::sparse_grads(plan, grads), dense).wait(),
             WithinRel(expected, 1e-13));

  const double limit = expected / 3;
  CHECK_THAT(optim::clip_grad_norm(exec, limit, optim::sparse_grads(plan, grads), dense).wait(),
             WithinRel(expected, 1e-13));
  const double factor = limit / (expected + 1e-6);
  const auto scaled = take(grads);
  for (std::size_t i = 0; i < scaled.size(); ++i)
    REQUIRE_THAT(scaled[i], WithinRel(static_cast<float>(static_cast<double>(values[i]) * factor), 1e-6f));
  CHECK_THAT(optim::grad_norm(exec, optim::sparse_grads(plan, grads), dense).wait(), WithinRel(limit, 1e-5));

  // Below the limit nothing changes, not even in the last bit.
  const auto before = take(grads);
  auto whole = optim::clip_grad_norm(exec, 1e9, grads, dense);
  CHECK(whole.factor(1e9) == 1.0);
  CHECK(take(grads) == before);
}

TEST_CASE("positions without a row count nothing in the norm", "[grad_norm]") {
  const exec_space exec;
  const auto index = make<ferry::mapped_space>("indices", std::vector<std::int64_t>{1, -1, 1, 9});
  const auto grads = make<ferry::mapped_space>("grads", 4, 1, std::vector<float>{1, 100, 2, 100});
  const auto plan = ferry::make_plan(exec, index, 4, ferry::bounds::skip{});
  CHECK(optim::grad_norm(exec, optim::sparse_grads(plan, grads)).wait() == 3.0);
}

TEST_CASE("the norm has the same bits on the host and on the device", "[grad_norm]") {
  auto random = generator();
  const auto grads = make<ferry::pinned_space>("grads", 1234, 17, normal_values<float>(random, 1234 * 17));
  const auto host_norm = optim::grad_norm(Kokkos::DefaultHostExecutionSpace(), grads).wait();
  CHECK(optim::grad_norm(exec_space(), grads).wait() == host_norm);
}

TEST_CASE("norms of doubles whose squares overflow or underflow", "[grad_norm]") {
  const exec_space exec;
  auto random = generator();
  std::uniform_real_distribution<double> any(0.5, 1.0);
  for (const std::size_t n : {1u, 33u, 5000u})
    for (const double least : {1e-300, 1e-200, 1e-150, 1.0, 1e150, 1e200, 1.7e308})
      for (const double most : {least, 1e-210, 1e10, 1e250}) {
        CAPTURE(n, least, most);
        std::vector<double> values(n), more(n);
        long double sum = 0;
        const auto fill = [&](std::vector<double>& list, double magnitude) {
          for (double& value : list) {
            value = any(random) * magnitude;
            sum += static_cast<long double>(value) * static_cast<long double>(value);
          }
        };
        fill(values, least);
        fill(more, most);
        // Floats and doubles add to one norm.
        const std::vector<float> narrow(n, 3.0f);
        sum += 9.0L * static_cast<long double>(n);
        const auto index = make<ferry::mapped_space>("indices", std::vector<std::int32_t>{0});
        auto a = make<ferry::mapped_space>("a", n, 1, values);
        auto b = make<ferry::mapped_space>("b", 1, n, more);
        const auto c = make<ferry::mapped_space>("c", n, 1, narrow);
        const auto plan = ferry::make_plan(exec, index, 1);
        const long double right = std::sqrt(sum);
        const double norm = optim::grad_norm(exec, a, optim::sparse_grads(plan, b), c).wait();
        if (right < static_cast<long double>(std::numeric_limits<double>::max()))
          CHECK_THAT(norm, WithinRel(static_cast<double>(right), 1e-12));
        else
          CHECK(std::isinf(norm));
        auto d = make<ferry::mapped_space>("d", n, 1, narrow);
        static_cast<void>(optim::clip_grad_norm(exec, 2.0, a, optim::sparse_grads(plan, b), d).wait());
        const long double factor = std::min(1.0L, 2.0L / (right + 1e-6L));
        const auto scaled = take(a), second = take(b);
        for (std::size_t i = 0; i < n; ++i)
          for (const auto& [now, before] : {std::pair{scaled[i], values[i]}, std::pair{second[i], more[i]}}) {
            const long double goal = factor * static_cast<long double>(before);
            // Factors and results below 2^-1022 have fewer digits.
            if (factor < 1e-300L || goal < 1e-300L) continue;
            if (!(std::abs(static_cast<long double>(now) - goal) <= 1e-12L * goal))
              FAIL(now << ", not " << static_cast<double>(goal));
          }
      }
  // Small numbers alone.
  const auto tiny = make<ferry::mapped_space>("tiny", 3, 2, std::vector<double>(6, 1e-220));
  CHECK_THAT(optim::grad_norm(exec, tiny).wait(), WithinRel(std::sqrt(6.0) * 1e-220, 1e-12));
}

TEST_CASE("grad_norm refuses what does not fit", "[grad_norm]") {
  const exec_space exec;
  auto grads = make<ferry::mapped_space>("grads", 4, 2, std::vector<float>(8));
  const auto index = make<ferry::mapped_space>("indices", std::vector<std::int64_t>{1, 0, 1});
  const auto plan = ferry::make_plan(exec, index, 4);
  CHECK_THROWS_AS(optim::grad_norm(exec, optim::sparse_grads(plan, grads)), ferry::invalid_argument);
  CHECK_THROWS_AS(optim::grad_norm(exec, optim::sparse_grads(ferry::row_plan(), grads)),
                  ferry::invalid_argument);
  CHECK_THROWS_AS(optim::clip_grad_norm(exec, -1.0, grads), ferry::invalid_argument);
}

TEST_CASE("the loss scale follows torch.amp.GradScaler", "[loss_scale]") {
  optim::loss_scale scaler(
      {.init_scale = 8, .growth_factor = 3, .backoff_factor = 0.25, .growth_interval = 3});
  // GradScaler's rule, written out: _amp_update_scale_.
  double scale = 8;
  int tracker = 0;
  auto random = generator();
  for (int i = 0; i < 200; ++i) {
    const bool overflowed = random() % 5 == 0;
    scaler.update(overflowed);
    if (overflowed) {
      scale *= 0.25;
      tracker = 0;
    } else if (++tracker == 3) {
      scale *= 3;
      tracker = 0;
    }
    REQUIRE(scaler.scale() == scale);
    REQUIRE(scaler.growth_tracker() == tracker);
  }
  optim::loss_scale huge({.init_scale = 0x1p126, .growth_interval = 1});
  huge.update();
  CHECK(huge.scale() == 0x1p126);
  CHECK_THROWS_AS(optim::loss_scale({.init_scale = 0}), ferry::invalid_argument);
  CHECK_THROWS_AS(optim::loss_scale({.growth_factor = 1}), ferry::invalid_argument);
  CHECK_THROWS_AS(optim::loss_scale({.backoff_factor = 1}), ferry::invalid_argument);
  CHECK_THROWS_AS(optim::loss_scale({.growth_interval = 0}), ferry::invalid_argument);
  CHECK_THROWS_AS(optim::loss_scale({.min_scale = 0}), ferry::invalid_argument);
  CHECK_THROWS_AS(optim::loss_scale({.min_scale = 0x1p-127}), ferry::invalid_argument);
  CHECK_THROWS_AS(optim::loss_scale({.init_scale = 2, .min_scale = 4}), ferry::invalid_argument);
  CHECK_THROWS_AS(optim::loss_scale({.init_scale = 0x1p127}), ferry::invalid_argument);
  CHECK_THROWS_AS(scaler.restore(std::nan(""), 0), ferry::invalid_argument);
  CHECK_THROWS_AS(scaler.restore(0x1p-127, 0), ferry::invalid_argument);
  CHECK_THROWS_AS(huge.restore(0x1p127, 0), ferry::invalid_argument);
}

TEST_CASE("a good batch after a long run of bad ones changes the weights as it should", "[loss_scale]") {
  const exec_space exec;
  const auto index = make<ferry::mapped_space>("indices", std::vector<std::int32_t>{3, 1});
  const optim::sgd rule{.lr = 0.5};
  const bool clips = GENERATE(false, true);
  const double least = GENERATE(0x1p-126, 0.25, 1.0);
  CAPTURE(clips, least);
  optim::loss_scale scaler({.min_scale = least});
  auto table = make<ferry::mapped_space>("table", 4, 2, std::vector<float>(8, 1.0f));
  auto state = optim::make_state(rule, table);
  const auto stepped = [&](float gradient) {
    const auto grads = make<ferry::mapped_space>("grads", 2, 2, std::vector<float>(4, gradient));
    const auto steps = [&](const optim::grad_scale& unscale) {
      ferry::step(exec, optim::chain{rule, unscale}, table, state, index, grads).wait();
    };
    const bool accepted =
        clips ? scaler.step_clipped(exec, 1.0, steps, grads) : scaler.step(exec, steps, grads);
    scaler.update();
    return accepted;
  };
  for (int i = 0; i < 300; ++i) REQUIRE_FALSE(stepped(std::numeric_limits<float>::quiet_NaN()));
  CHECK(scaler.scale() == least);
  CHECK(stepped(static_cast<float>(scaler.scale())));
  // A gradient of 1 in four elements; clipped to a norm of 1 it is 1/2.
  const float moved = 1.0f - 0.5f * (clips ? 0.5f : 1.0f);
  const auto now = take(table);
  for (std::size_t i = 0; i < now.size(); ++i) {
    const double right = i / 2 % 2 == 1 ? static_cast<double>(moved) : 1.0;
    CHECK_THAT(static_cast<double>(now[i]), WithinRel(right, 1e-5));
  }
  // Finite gradients, but what the division leaves is beyond float.
  if (least < 1.0 && !clips) {
    CHECK_FALSE(stepped(std::numeric_limits<float>::max()));
    CHECK(take(table) == now);
  }
}

TEST_CASE("a step with a factor that float can't hold is left out", "[loss_scale]") {
  const exec_space exec;
  const auto grads = make<ferry::mapped_space>("grads", 1, 1, std::vector<float>{3e38f});
  optim::loss_scale scaler({.init_scale = 1.0});
  const auto never = [](const optim::grad_scale&) { FAIL("stepped"); };
  CHECK_FALSE(scaler.step_clipped(exec, 1e-3, never, grads));
  CHECK_THAT(scaler.total_norm(), WithinRel(3e38, 1e-6));
  scaler.update();
  CHECK(scaler.scale() == 0.5);
  CHECK_THROWS_AS(scaler.step_clipped(exec, 1e-60, never, grads), ferry::invalid_argument);
}

TEST_CASE("a step with a scaled loss leaves out all tables or none", "[loss_scale]") {
  const exec_space exec;
  auto random = generator();
  const auto start = normal_values<float>(random, 30);
  const auto index = make<ferry::mapped_space>("indices", std::vector<std::int32_t>{4, 0, 4});
  auto table = make<ferry::mapped_space>("table", 10, 3, start);
  auto second = make<ferry::mapped_space>("other", 10, 3, start);
  const optim::sgd rule{.lr = 0.5};
  auto state = optim::make_state(rule, table);
  auto other_state = optim::make_state(rule, second);
  optim::loss_scale scaler({.init_scale = 4});
  auto values = normal_values<float>(random, 9);
  const auto plain = values;
  for (auto& value : values) value *= 4;
  const auto good = make<ferry::mapped_space>("grads", 3, 3, values);
  values[7] = std::numeric_limits<float>::infinity();
  const auto bad = make<ferry::mapped_space>("grads", 3, 3, values);
  const auto steps = [&](const auto& grads) {
    return [&](const optim::grad_scale& unscale) {
      ferry::step(exec, optim::chain{rule, unscale}, table, state, index, good).wait();
      ferry::step(exec, optim::chain{rule, unscale}, second, other_state, index, grads).wait();
    };
  };
  CHECK_FALSE(scaler.step(exec, steps(bad), good, bad));
  CHECK(take(table) == start);
  CHECK(take(second) == start);
  CHECK(state.steps() == 0);
  scaler.update();
  CHECK(scaler.scale() == 2.0);

  scaler.restore(4, 0);
  const auto plan = ferry::make_plan(exec, index, 10);
  CHECK(scaler.step(exec, steps(good), optim::sparse_grads(plan, good), good));
  scaler.update();
  CHECK(scaler.scale() == 4.0);
  CHECK(scaler.growth_tracker() == 1);
  auto expected = start;
  for (std::size_t j = 0; j < 3; ++j) {
    expected[12 + j] -= 0.5f * (plain[j] + plain[6 + j]);
    expected[j] -= 0.5f * plain[3 + j];
  }
  const auto got = take(table);
  for (std::size_t i = 0; i < got.size(); ++i)
    REQUIRE_THAT(got[i], Catch::Matchers::WithinAbs(expected[i], 1e-5));
  CHECK(take(second) == got);

  // Limited: the sum of the squares of the applied gradients is the limit's square.
  auto limited = make<ferry::mapped_space>("limited", 3, 3, std::vector<float>(9));
  auto limited_state = optim::make_state(rule, limited);
  const auto ids = make<ferry::mapped_space>("indices", std::vector<std::int32_t>{0, 1, 2});
  CHECK(scaler.step_clipped(
      exec, 0.125,
      [&](const optim::grad_scale& unscale) {
        ferry::step(exec, optim::chain{rule, unscale}, limited, limited_state, ids, good).wait();
      },
      good));
  CHECK_THAT(scaler.total_norm(), WithinRel(std::sqrt(squares(plain)), 1e-6));
  CHECK_THAT(std::sqrt(squares(take(limited))), WithinRel(0.5 * 0.125, 1e-5));
}

}  // namespace ferry_test::grad_norm_test
