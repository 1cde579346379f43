// SPDX-License-Identifier: Apache-2.0
#include "optim/transform_kit.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

/// Policies and transforms of steps together, where one could upset the other.
namespace ferry_test::step_mix_test {

using space = ferry::mapped_space;
constexpr std::size_t rows = 11, width = 35;

TEST_CASE("a skipped step never was, for rows that catch up", "[optim][nonfinite][step_count]") {
  for_each_path<space, ferry::device_space, work::changes>([](auto path) {
    CAPTURE(path.name);
    auto random = generator(1700);
    const exec_space exec;
    ferry::optim::adam rule{.lr = 0.1};
    const auto start = values<double>(random, rows * width);
    auto table = make<space>("weights", rows, width, start);
    auto state = ferry::optim::make_state(rule, table);
    plain_training<ferry::optim::adam, 2> dense(rule, start, width);
    std::int64_t count = 0;
    for (int call = 1; call <= 40; ++call) {
      auto batch = random_batch<double>(random, 2, rows, width);
      const bool spoiled = call % 7 == 3;
      // Options of a step that is left out leave no trace.
      rule.lr = spoiled ? 5.0 : 0.1 / (1.0 + call / 10);
      if (spoiled) batch.values[random() % batch.values.size()] = std::numeric_limits<double>::infinity();
      ferry::step(exec, rule, table, state, batch.rows,
                  make<ferry::device_space>("grads", 2, width, batch.values), path,
                  ferry::step_count::catch_up{}, ferry::nonfinite::skip{})
          .wait();
      if (spoiled) continue;
      ++count;
      const auto sums = summed(batch, width);
      for (std::size_t row = 0; row < rows; ++row) {
        const auto named = sums.find(row);
        dense.step(rule, count, row, named == sums.end() ? std::vector<double>(width, 0.0) : named->second);
      }
    }
    CHECK(state.steps() == count);
    CHECK(state.skipped() == 40 - count);
    ferry::catch_up(exec, rule, table, state).wait();
    CHECK(farthest_apart(take(table), dense.weights) < 1e-12);
    for (int f = 0; f < 2; ++f)
      CHECK(farthest_apart(take(state.field(f)), dense.state[static_cast<std::size_t>(f)]) < 1e-12);
  });
}

TEST_CASE("a step that was skipped is counted once, however it ends", "[optim][nonfinite]") {
  const exec_space exec;
  const ferry::optim::sgd rule{.lr = 0.1};
  auto table = make<space>("weights", rows, 1, std::vector<float>(rows, 1.0f));
  auto state = ferry::optim::make_state(rule, table);
  const auto bad =
      make<ferry::device_space>("grads", 1, 1, std::vector<float>{std::numeric_limits<float>::infinity()});
  const std::vector<std::int64_t> ids{4};
  auto ticket = ferry::step(exec, rule, table, state, ids, bad, ferry::nonfinite::skip{});
  CHECK(state.steps() == 1);
  CHECK(state.skipped() == 0);
  ticket.wait();
  ticket.wait();
  CHECK(state.steps() == 0);
  CHECK(state.skipped() == 1);
  { const auto dropped = ferry::step(exec, rule, table, state, ids, bad, ferry::nonfinite::skip{}); }
  CHECK(state.steps() == 0);
  CHECK(state.skipped() == 2);
  // Nobody asks what a detached one has found, so it stays counted.
  ferry::step(exec, rule, table, state, ids, bad, ferry::nonfinite::skip{}).detach();
  exec.fence();
  CHECK(state.steps() == 1);
  CHECK(state.skipped() == 2);
  CHECK(take(table) == std::vector<float>(rows, 1.0f));
}

TEST_CASE("rows catch up whatever the type of the gradients", "[optim][step_count]") {
  auto random = generator(1710);
  const exec_space exec;
  const ferry::optim::adam rule{.lr = 0.1};
  const auto start = values<float>(random, rows * width);
  auto table = make<space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  plain_training<ferry::optim::adam, 2> dense(rule, start, width);
  std::vector<std::int64_t> every(rows);
  for (std::size_t row = 0; row < rows; ++row) every[row] = static_cast<std::int64_t>(row);
  for (std::int64_t step = 1; step <= 30; ++step) {
    const auto batch = random_batch<float>(random, 2, rows, width);
    const auto take_step = [&]<class Value>(Value) {
      std::vector<Value> gradients;
      for (const float g : batch.values) gradients.push_back(Value(g));
      ferry::step(exec, rule, table, state, batch.rows,
                  make<ferry::device_space>("grads", 2, width, gradients), ferry::step_count::catch_up{})
          .wait();
    };
    if (step % 3 == 0)
      take_step(double{});
    else if (step % 3 == 1)
      take_step(ferry::half_t(0.0f));
    else
      take_step(float{});
    const auto sums = summed(batch, width);
    for (std::size_t row = 0; row < rows; ++row) {
      const auto named = sums.find(row);
      dense.step(rule, step, row, named == sums.end() ? std::vector<double>(width, 0.0) : named->second);
    }
    auto snapshot = make<ferry::device_space>("seen", rows, width, std::vector<float>(rows * width, -77.0f));
    ferry::gather(exec, rule, table, state, every, snapshot).wait();
    CHECK(farthest_apart(take(snapshot), dense.weights) < 2e-5);
  }
  ferry::catch_up(exec, rule, table, state).wait();
  CHECK(farthest_apart(take(table), dense.weights) < 2e-5);
}

// Between two visits a row's weights are numbers of its narrow format: what it missed is computed in float, and the whole
// rounded once, with the random bits of the step that comes.
TEST_CASE("rows that catch up are rounded at random where they are stored", "[optim][step_count][rounding]") {
  using ferry::half_t;
  auto random = generator(1715);
  const exec_space exec;
  const ferry::optim::adamw rule{.lr = 0.01, .weight_decay = 0.1};
  auto weights = values<half_t>(random, rows * width);
  auto table = make<space>("weights", rows, width, weights);
  auto state = ferry::optim::make_state(rule, table);
  state.set_seed(random());
  std::vector<float> first(rows * width, 0.0f), second(rows * width, 0.0f);
  std::vector<std::int64_t> row_steps(rows, 0);
  for (std::int64_t step = 1; step <= 30; ++step) {
    const auto ids = unique_indices<std::int64_t>(random, 3, rows);
    const auto gradients = values<float>(random, 3 * width);
    ferry::step(exec, rule, table, state, ids, make<ferry::device_space>("grads", 3, width, gradients),
                ferry::step_count::catch_up{}, ferry::rounding::stochastic{})
        .wait();
    const ferry::kernels::step_randomness bits{state.seed(), static_cast<std::uint64_t>(step)};
    const auto bring = [&](std::int64_t at_row, const float* gradient) {
      const auto row = static_cast<std::size_t>(at_row);
      for (std::size_t c = 0; c < width; ++c) {
        const std::size_t element = row * width + c;
        float weight = weights[element], fields[2] = {first[element], second[element]};
        for (auto s = row_steps[row] + 1; s <= step; ++s)
          rule.coefficients<float>(s).apply(weight, s == step && gradient != nullptr ? gradient[c] : 0.0f,
                                            fields);
        const auto column = static_cast<std::int64_t>(c);
        weights[element] = half_t::at_random(weight, bits.draw(at_row, column / 4).word[column % 4]);
        first[element] = fields[0];
        second[element] = fields[1];
      }
      row_steps[row] = step;
    };
    for (std::size_t i = 0; i < ids.size(); ++i) bring(ids[i], gradients.data() + i * width);
    if (step % 10 != 0) continue;
    ferry::catch_up(exec, rule, table, state, ferry::rounding::stochastic{}).wait();
    for (std::size_t row = 0; row < rows; ++row)
      if (row_steps[row] < step) bring(static_cast<std::int64_t>(row), nullptr);
    CHECK(same_bits(take(table), weights));
  }
  CHECK(same_bits(take(table), weights));
  // While gradients cancel one another in its first moment, an element rests, and powers of the rates decay its moments.
  CHECK(farthest_apart(take(state.field(0)), first) < 1e-5);
  CHECK(farthest_apart(take(state.field(1)), second) < 1e-6);
}

TEST_CASE("transforms see what the duplicates policy makes of a row's gradients", "[optim][transforms]") {
  const exec_space exec;
  const ferry::optim::chain chain{ferry::optim::sgd{.lr = 0.1}, ferry::optim::clip_norm{20.0},
                                  ferry::optim::max_norm{50.0}};
  const plain_stages plain{{plain_clip_norm(20.0)}, {}, {}, 50.0};
  for_each_path<space, ferry::device_space, work::changes>([&](auto path) {
    const auto run = [&](auto policy) {
      CAPTURE(path.name, policy.name);
      auto random = generator(1720);
      const auto start = values<double>(random, rows * width);
      auto table = make<space>("weights", rows, width, start);
      auto state = ferry::optim::make_state(chain, table);
      plain_training<ferry::optim::sgd, 0> model(chain.rule, start, width);
      const auto batch = random_batch<double>(random, 23, rows, width);
      ferry::step(exec, chain, table, state, batch.rows,
                  make<ferry::device_space>("grads", 23, width, batch.values), path, policy)
          .wait();
      for (const auto& [row, gradient] :
           combined(batch.values, width, batch.rows, rows, policy.name, on_bad::leave))
        step_with(plain, model, chain.rule, 1, static_cast<std::size_t>(row), gradient);
      CHECK(farthest_apart(take(table), model.weights) < 1e-12);
    };
    run(ferry::duplicates::sum{});
    run(ferry::duplicates::mean{});
    run(ferry::duplicates::first{});
    run(ferry::duplicates::last{});
  });
}

TEST_CASE("bad indices that are skipped or clamped, under transforms and counters", "[optim][transforms]") {
  const exec_space exec;
  std::vector<std::uint8_t> mask(rows, 0);
  mask[2] = 1;
  const auto frozen = make<space>("mask", mask);
  const ferry::optim::chain chain{ferry::optim::sgd{.lr = 1.0}, ferry::optim::clip_norm{1e9},
                                  ferry::optim::frozen_rows{frozen}};
  const std::vector<std::int64_t> ids{-3, 2, 5, 400};
  const auto grads = make<ferry::device_space>("grads", 4, 1, std::vector<float>(4, 1.0f));
  for_each_path<space, ferry::device_space, work::changes>([&](auto path) {
    CAPTURE(path.name);
    const auto run = [&](std::vector<std::uint32_t> moved, auto... policies) {
      auto table = make<space>("weights", rows, 1, std::vector<float>(rows, 4.0f));
      auto state = ferry::optim::make_state(chain, table);
      ferry::step(exec, chain, table, state, ids, grads, path, ferry::step_count::per_row{}, policies...)
          .wait();
      std::vector<float> expected;
      for (const auto m : moved) expected.push_back(4.0f - static_cast<float>(m));
      CHECK(take(table) == expected);
      CHECK(take(state.row_steps()) == moved);
    };
    run({0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}, ferry::bounds::skip{});
    run({1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, ferry::bounds::clamp{});
    run({0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}, ferry::bounds::skip{}, ferry::duplicates::assume_unique{});
    run({1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, ferry::bounds::clamp{}, ferry::duplicates::assume_unique{});
  });
}

TEST_CASE("max_norm comes last, wherever it is written", "[optim][transforms]") {
  const exec_space exec;
  const auto factors = make<space>("factors", std::vector<double>(rows, 0.5));
  const ferry::optim::chain chain{ferry::optim::sgd{.lr = 1.0}, ferry::optim::max_norm{3.0},
                                  ferry::optim::row_rates{factors}};
  auto table = make<space>("weights", rows, 1, std::vector<double>(rows, 1.0));
  auto state = ferry::optim::make_state(chain, table);
  ferry::step(exec, chain, table, state, std::vector<std::int64_t>{4},
              make<ferry::device_space>("grads", 1, 1, std::vector<double>{-6.0}))
      .wait();
  // 1 + 6 = 7, half of the way from 1: 4, limited to 3.
  CHECK(farthest_apart(std::vector<double>{take(table)[4]}, std::vector<double>{3.0}) < 1e-6);
}

}  // namespace ferry_test::step_mix_test
