// SPDX-License-Identifier: Apache-2.0
#include <ferry/error.hpp>
#include <ferry/optim/schedules.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <array>
#include <cmath>
#include <cstdint>

/// Each closed form against torch.optim.lr_scheduler's get_lr(), which computes a rate from the previous one.
namespace ferry_test::schedules_test {

namespace {
using Catch::Matchers::WithinAbs;
constexpr double pi = 3.14159265358979323846;
}  // namespace

TEST_CASE("schedules equal torch's recursions", "[schedules]") {
  using namespace ferry::optim;
  const double base = 0.4;
  const std::array<std::int64_t, 4> milestones{30, 7, 30, 12};
  double step_size = base, multi = base, exponential = base, cosine = base, linear = base * 0.25;
  double polynomial = base;
  for (std::int64_t t = 0; t < 70; ++t) {
    if (t > 0) {
      if (t % 9 == 0) step_size *= 0.3;
      for (const auto milestone : milestones)
        if (milestone == t) multi *= 0.5;
      exponential *= 0.93;
      const double last = static_cast<double>(t);
      // CosineAnnealingLR with T_max 20: its two cases.
      if ((t - 1 - 20) % 40 == 0)
        cosine += (base - 0.01) * (1 - std::cos(pi / 20)) / 2;
      else
        cosine =
            (1 + std::cos(pi * last / 20)) / (1 + std::cos(pi * (last - 1) / 20)) * (cosine - 0.01) + 0.01;
      if (t <= 8) linear *= 1 + (0.9 - 0.25) / (8 * 0.25 + (last - 1) * (0.9 - 0.25));
      if (t <= 50) polynomial *= std::pow((1 - last / 50) / (1 - (last - 1) / 50), 1.7);
    }
    CAPTURE(t);
    REQUIRE_THAT(step_lr(base, t, 9, 0.3), WithinAbs(step_size, 1e-12));
    REQUIRE_THAT(multi_step_lr(base, t, milestones, 0.5), WithinAbs(multi, 1e-12));
    REQUIRE(multi_step_lr(base, t, {3, 17}, 0.5) == base * (t < 3 ? 1.0 : t < 17 ? 0.5 : 0.25));
    REQUIRE_THAT(exponential_lr(base, t, 0.93), WithinAbs(exponential, 1e-12));
    REQUIRE_THAT(cosine_annealing_lr(base, t, 20, 0.01), WithinAbs(cosine, 1e-6));
    REQUIRE_THAT(linear_lr(base, t, 0.25, 0.9, 8), WithinAbs(linear, 1e-12));
    REQUIRE_THAT(constant_lr(base, t, 0.5, 4), WithinAbs(t < 4 ? 0.2 : 0.4, 1e-15));
    REQUIRE_THAT(polynomial_lr(base, t, 50, 1.7), WithinAbs(polynomial, 1e-10));
  }
}

TEST_CASE("cosine annealing with warm restarts follows torch's counters", "[schedules]") {
  for (const std::int64_t t_mult : {1, 2, 3}) {
    std::int64_t since = 0, period = 5;
    for (std::int64_t t = 0; t < 200; ++t) {
      const double expected =
          0.1 +
          (1.0 - 0.1) * (1 + std::cos(pi * static_cast<double>(since) / static_cast<double>(period))) / 2;
      CAPTURE(t, t_mult);
      REQUIRE_THAT(ferry::optim::cosine_annealing_warm_restarts(1.0, static_cast<double>(t), 5, t_mult, 0.1),
                   WithinAbs(expected, 1e-12));
      if (++since >= period) {
        since -= period;
        period *= t_mult;
      }
    }
  }
  // A fraction of an epoch: in the middle of the first period the cosine is zero.
  CHECK_THAT(ferry::optim::cosine_annealing_warm_restarts(2.0, 2.5, 5), WithinAbs(1.0, 1e-12));
}

TEST_CASE("schedules refuse options outside of their range", "[schedules]") {
  using namespace ferry::optim;
  CHECK_THROWS_AS(step_lr(1, -1, 3), ferry::invalid_argument);
  CHECK_THROWS_AS(step_lr(1, 1, 0), ferry::invalid_argument);
  CHECK_THROWS_AS(cosine_annealing_lr(1, 1, 0), ferry::invalid_argument);
  CHECK_THROWS_AS(cosine_annealing_warm_restarts(1, 1, 0), ferry::invalid_argument);
  CHECK_THROWS_AS(cosine_annealing_warm_restarts(1, 1, 5, 0), ferry::invalid_argument);
  CHECK_THROWS_AS(linear_lr(1, 1, 0.0), ferry::invalid_argument);
  CHECK_THROWS_AS(linear_lr(1, 1, 0.5, 2.0), ferry::invalid_argument);
  CHECK_THROWS_AS(constant_lr(1, 1, 1.5), ferry::invalid_argument);
  CHECK_THROWS_AS(polynomial_lr(1, 1, 0), ferry::invalid_argument);
}

}  // namespace ferry_test::schedules_test
