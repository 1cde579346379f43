// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/test.hpp"

#include <boost/hana/tuple.hpp>

#include <catch2/matchers/catch_matchers_floating_point.hpp>

namespace ferry_test::schedule_test {

// Learning rates that change in each step: what they cost is bounded by counts of calls and by bytes, what they give is
// compared with plain loops.

/// Momentum whose rate falls with the step; counts how often an update is made for it. (In no unnamed namespace, see
/// two_buffers.)
struct falling_rate {
  static constexpr std::string_view name = "falling_rate";
  static constexpr int min_fields = 1;
  static inline std::atomic<std::int64_t> update_count{0};

  double lr = 0.1;
  double decay = 0.01;

  template <class Compute>
  struct update {
    Compute lr, factor;
    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N]) const {
      state[0] = factor * state[0] + gradient;
      weight -= lr * state[0];
    }
  };
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(ferry::optim::field{"momentum"}); }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t step) const {
    ++update_count;
    return {static_cast<Compute>(lr / (1.0 + decay * static_cast<double>(step))), static_cast<Compute>(0.5)};
  }
  void check() const {}
};

/// The update in two parts: the first depends on the step alone.
struct falling_rate_apart : falling_rate {
  static constexpr std::string_view name = "falling_rate_apart";

  template <class Compute>
  struct terms {
    double divisor;
    friend bool operator==(const terms&, const terms&) = default;
  };
  struct falling {
    double decay;
    friend bool operator==(const falling&, const falling&) = default;
    template <class Compute>
    [[nodiscard]] terms<Compute> at(std::int64_t step) const {
      ++update_count;
      return {1.0 + decay * static_cast<double>(step)};
    }
  };
  template <class Compute, class Wide>
  struct options_of {
    Wide lr;
    KOKKOS_FUNCTION update<Compute> at(const terms<Compute>& numbers) const {
      return {ferry::optim::narrowed<Compute>(lr / numbers.divisor), Compute(0.5f)};
    }
  };
  [[nodiscard]] falling by_step() const { return {decay}; }
  template <class Compute, class Wide>
  [[nodiscard]] options_of<Compute, Wide> options() const {
    return {Wide(lr)};
  }
};
static_assert(ferry::ScheduledOptimizer<falling_rate_apart> && !ferry::ScheduledOptimizer<falling_rate>);

using space = ferry::mapped_space;
constexpr std::size_t rows = 5, width = 6;

double rate(std::int64_t step) { return 0.1 / (1.0 + 0.05 * static_cast<double>(step)); }

/// Steps that each name some of the rows once, by options of their own; the rows' counts and bits are those of plain loops.
template <class Rule, int Fields>
void each_row_by_its_own_count(std::int64_t steps, const std::function<Rule(std::int64_t)>& rule_at,
                               std::integral_constant<int, Fields>) {
  CAPTURE(Rule::name);
  const exec_space exec;
  auto random = generator(91);
  const auto start = values<double>(random, rows * width);
  auto table = make<space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule_at(1), table);
  plain_training<Rule, Fields> expected(rule_at(1), start, width);
  std::vector<std::int64_t> counts(rows);
  for (std::int64_t s = 1; s <= steps; ++s) {
    const Rule rule = rule_at(s);
    const std::vector<std::int64_t> ids{s % 3, 3 + s % 2};
    const auto gradient = values<double>(random, ids.size() * width);
    ferry::step(exec, rule, table, state, ids,
                make<ferry::device_space>("grads", ids.size(), width, gradient), ferry::step_count::per_row{},
                ferry::path::direct{})
        .wait();
    for (std::size_t p = 0; p < ids.size(); ++p) {
      const auto row = static_cast<std::size_t>(ids[p]);
      const auto first = gradient.begin() + static_cast<std::ptrdiff_t>(p * width);
      expected.step(rule, ++counts[row], row, {first, first + width});
    }
  }
  CHECK(take(table) == expected.weights);
  for (int f = 0; f < Fields; ++f) CHECK(take(state.field(f)) == expected.state[static_cast<std::size_t>(f)]);
}

/// If each step names every row, rows that count for themselves have the bits of those that do not.
template <class Rule>
void per_row_is_global_where_all_are_named(Rule rule) {
  CAPTURE(Rule::name);
  const exec_space exec;
  auto random = generator(93);
  const auto start = values<float>(random, rows * width);
  auto first = make<space>("one", rows, width, start), second = make<space>("other", rows, width, start);
  auto one_state = ferry::optim::make_state(rule, first),
       other_state = ferry::optim::make_state(rule, second);
  const std::vector<int> every{3, 1, 4, 0, 2};
  for (std::int64_t s = 1; s <= 20; ++s) {
    rule.lr = rate(s);
    const auto grads = make<ferry::device_space>("grads", rows, width, values<float>(random, rows * width));
    ferry::step(exec, rule, first, one_state, every, grads).wait();
    ferry::step(exec, rule, second, other_state, every, grads, ferry::step_count::per_row{}).wait();
  }
  CHECK(take(first) == take(second));
  CHECK(take(first) != start);
}

TEST_CASE("rows that count have the bits of plain loops under a schedule", "[optim][step_count][schedule]") {
  using namespace ferry::optim;
  const std::integral_constant<int, 1> single;
  const std::integral_constant<int, 2> two;
  const std::integral_constant<int, 3> three;
  const auto later = [](std::int64_t s, double now, double late) { return s < 15 ? now : late; };
  each_row_by_its_own_count<adam>(
      30,
      [&](std::int64_t s) {
        return adam{.lr = rate(s), .betas = {0.9, later(s, 0.999, 0.99)}};
      },
      two);
  each_row_by_its_own_count<adam>(
      30, [&](std::int64_t s) { return adam{.lr = rate(s), .weight_decay = rate(2 * s), .amsgrad = true}; },
      three);
  each_row_by_its_own_count<adamw>(
      30, [&](std::int64_t s) { return adamw{.lr = rate(s), .weight_decay = rate(2 * s)}; }, two);
  each_row_by_its_own_count<sparse_adam>(
      30, [&](std::int64_t s) { return sparse_adam{.lr = rate(s)}; }, two);
  each_row_by_its_own_count<adamax>(
      30, [&](std::int64_t s) { return adamax{.lr = rate(s)}; }, two);
  each_row_by_its_own_count<nadam>(
      30, [&](std::int64_t s) { return nadam{.lr = rate(s), .momentum_decay = later(s, 4e-3, 1e-2)}; }, two);
  each_row_by_its_own_count<adagrad>(
      30, [&](std::int64_t s) { return adagrad{.lr = rate(s), .lr_decay = later(s, 0.1, 0.0)}; }, single);
  each_row_by_its_own_count<asgd>(
      30, [&](std::int64_t s) { return asgd{.lr = rate(s), .lambd = 0.1, .alpha = 0.6, .t0 = 5}; }, single);
  each_row_by_its_own_count<falling_rate>(
      30, [&](std::int64_t s) { return falling_rate{.lr = rate(s)}; }, single);
  for (const double decay : {0.01, 0.02})
    each_row_by_its_own_count<falling_rate_apart>(
        30,
        [&](std::int64_t s) { return falling_rate_apart{{.lr = rate(s), .decay = s < 9 ? 0.01 : decay}}; },
        single);
}

TEST_CASE("a schedule costs a step of rows that count no more than the first did",
          "[optim][step_count][schedule]") {
  const exec_space exec;
  constexpr std::int64_t steps = 200;
  ferry::tensor<float, space> table("weights", rows, width);
  ferry::init::zeros(exec, table);
  ferry::tensor<float, ferry::device_space> grads("grads", 1, width);
  ferry::init::zeros(exec, grads);
  falling_rate_apart rule;
  auto state = ferry::optim::make_state(rule, table);
  const auto before = falling_rate::update_count.load();
  for (std::int64_t s = 1; s <= steps; ++s) {
    rule.lr = rate(s);
    ferry::step(exec, rule, table, state, std::vector<std::int64_t>{s % 5}, grads,
                ferry::step_count::per_row{})
        .wait();
  }
  CHECK(falling_rate::update_count - before <= 3 * steps);
}

TEST_CASE("steps in float and in double by turns work out each update once in each",
          "[optim][step_count][schedule]") {
  const exec_space exec;
  constexpr std::int64_t steps = 200;
  auto random = generator(95);
  const auto start = values<float>(random, rows * width);
  auto table = make<space>("weights", rows, width, start);
  falling_rate rule;
  auto state = ferry::optim::make_state(rule, table);
  plain_training<falling_rate, 1> dense(rule, start, width);
  const std::vector<double> zeros(width, 0.0);
  const auto before = falling_rate::update_count.load();
  for (std::int64_t s = 1; s <= steps; ++s) {
    rule.lr = rate(s);
    const auto named = static_cast<std::size_t>(s) % (rows - 1);
    const auto gradient = values<float>(random, width);
    const std::vector<double> wide(gradient.begin(), gradient.end());
    const std::vector<std::size_t> ids{named};
    if (s % 2 == 0)
      ferry::step(exec, rule, table, state, ids, make<ferry::device_space>("grads", 1, width, gradient),
                  ferry::step_count::catch_up{})
          .wait();
    else
      ferry::step(exec, rule, table, state, ids, make<ferry::device_space>("grads", 1, width, wide),
                  ferry::step_count::catch_up{})
          .wait();
    for (std::size_t row = 0; row < rows; ++row) dense.step(rule, s, row, row == named ? wide : zeros);
  }
  // Twice in the history, and some times for the step itself; the oracle's are once for each row.
  CHECK(falling_rate::update_count - before <= (12 + static_cast<std::int64_t>(rows)) * steps);
  ferry::catch_up(exec, rule, table, state).wait();
  CHECK(farthest_apart(take(table), dense.weights) < 1e-4);
}

TEST_CASE("the history of a schedule takes some bytes for each step, until all rows have caught up",
          "[optim][step_count][schedule]") {
  const exec_space exec;
  constexpr std::size_t steps = 1000;
  ferry::tensor<float, space> table("weights", rows, width);
  ferry::init::zeros(exec, table);
  ferry::tensor<float, ferry::device_space> grads("grads", 1, width);
  ferry::init::zeros(exec, grads);
  ferry::optim::adam rule;
  auto state = ferry::optim::make_state(rule, table);
  for (std::size_t s = 1; s <= steps; ++s) {
    rule.lr = rate(static_cast<std::int64_t>(s));
    ferry::step(exec, rule, table, state, std::vector<std::size_t>{s % 2}, grads,
                ferry::step_count::catch_up{})
        .wait();
  }
  // An update and three numbers; arrays that grow have room for half as much again.
  constexpr std::size_t step_bytes = sizeof(ferry::optim::adam::update<float>) + 3 * sizeof(double);
  CHECK(state.clock()->updates.history_bytes() <= step_bytes * steps * 3 / 2 + 4096);
  ferry::catch_up(exec, rule, table, state).wait();
  CHECK(state.clock()->updates.history_bytes() <= 4096);
}

// Each closed form against torch.optim.lr_scheduler's get_lr(), which computes a rate from the previous one.

using Catch::Matchers::WithinAbs;
constexpr double pi = 3.14159265358979323846;

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

}  // namespace ferry_test::schedule_test
