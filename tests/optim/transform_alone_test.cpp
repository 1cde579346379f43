// SPDX-License-Identifier: Apache-2.0
#include "optim/transform_kit.hpp"
#include "support/test.hpp"

/// One transform at a time around several rules, and what a step refuses of them.
namespace ferry_test::transform_alone_test {

constexpr std::size_t rows = 13, n = 19;

/// Three steps in `T` without a path's name; gives the weights.
template <class T, class Model, class Rule, class... Transforms>
std::vector<T> alone(const plain_stages& plain, std::size_t width, const Rule& rule,
                     Transforms... transforms) {
  CAPTURE(Rule::name, width);
  auto random = generator(700 + width);
  const exec_space exec;
  const ferry::optim::chain chain{rule, transforms...};
  const auto start = values<T>(random, rows * width);
  auto table = make<ferry::mapped_space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(chain, table);
  Model model(rule, start, width);
  for (int step = 1; step <= 3; ++step) {
    const auto batch = random_batch<T>(random, n, rows, width);
    ferry::step(exec, chain, table, state, batch.rows,
                make<ferry::device_space>("grads", n, width, batch.values), ferry::path::direct{})
        .wait();
    for (const auto& [row, gradient] : summed(batch, width))
      step_with(plain, model, rule, step, row, gradient);
  }
  auto now = take(table);
  CHECK(farthest_apart(now, model.weights) < (std::is_same_v<T, double> ? 1e-12 : 2e-4));
  return now;
}

template <class T, class Model, class Rule>
void each_alone(const Rule& rule) {
  auto random = generator(41);
  std::vector<T> factors(rows);
  std::vector<std::int32_t> mask(rows);
  for (auto& factor : factors) factor = static_cast<T>(random() % 9) / T(4);
  for (auto& frozen : mask) frozen = static_cast<std::int32_t>(random() % 3) - 1;  // any number but 0 freezes
  const auto rates = make<ferry::pinned_space>("factors", factors);
  const auto frozen = make<ferry::pinned_space>("mask", mask);
  for (const std::size_t width : {1u, 4u, 35u, 131u}) {
    const auto bare = alone<T, Model>({}, width, rule);
    CHECK(bare !=
          alone<T, Model>({{plain_grad_scale(16.0)}, {}, {}}, width, rule, ferry::optim::grad_scale{16.0}));
    CHECK(bare !=
          alone<T, Model>({{plain_clip_value(3.0)}, {}, {}}, width, rule, ferry::optim::clip_value{3.0}));
    CHECK(bare !=
          alone<T, Model>({{plain_clip_norm(6.0)}, {}, {}}, width, rule, ferry::optim::clip_norm{6.0}));
    CHECK(bare != alone<T, Model>({{}, {}, {}, 4.0}, width, rule, ferry::optim::max_norm{4.0}));
    CHECK(bare != alone<T, Model>({{}, {factors.begin(), factors.end()}, {}}, width, rule,
                                  ferry::optim::row_rates{rates}));
    std::vector<std::uint8_t> nonzero;
    for (const auto m : mask) nonzero.push_back(m != 0);
    CHECK(bare != alone<T, Model>({{}, {}, nonzero}, width, rule, ferry::optim::frozen_rows{frozen}));
  }
}

TEST_CASE("each transform alone", "[optim][transforms]") {
  each_alone<float, plain_training<ferry::optim::sgd, 0>>(ferry::optim::sgd{.lr = 0.1});
  each_alone<double, plain_training<ferry::optim::adam, 2>>(ferry::optim::adam{.lr = 0.1});
}

TEST_CASE("transforms of gradients act in their order", "[optim][transforms]") {
  using ferry::optim::clip_norm;
  using ferry::optim::clip_value;
  using ferry::optim::grad_scale;
  const ferry::optim::sgd rule{.lr = 0.1};
  using model = plain_training<ferry::optim::sgd, 0>;
  const auto scale = plain_grad_scale(4.0);
  const auto value = plain_clip_value(3.0);
  const auto norm = plain_clip_norm(6.0);
  const auto svn = alone<double, model>({{scale, value, norm}, {}, {}}, 35, rule, grad_scale{4.0},
                                        clip_value{3.0}, clip_norm{6.0});
  const auto vsn = alone<double, model>({{value, scale, norm}, {}, {}}, 35, rule, clip_value{3.0},
                                        grad_scale{4.0}, clip_norm{6.0});
  const auto nvs = alone<double, model>({{norm, value, scale}, {}, {}}, 35, rule, clip_norm{6.0},
                                        clip_value{3.0}, grad_scale{4.0});
  CHECK(svn != vsn);
  CHECK(svn != nvs);
  CHECK(vsn != nvs);
}

TEST_CASE("gradients within the limits pass unchanged", "[optim][transforms]") {
  const ferry::optim::adam rule{.lr = 0.1};
  using model = plain_training<ferry::optim::adam, 2>;
  const auto bare = alone<float, model>({}, 35, rule);
  CHECK(bare == alone<float, model>({}, 35, rule, ferry::optim::grad_scale{1.0},
                                    ferry::optim::clip_value{1e6}, ferry::optim::clip_norm{1e6},
                                    ferry::optim::max_norm{1e6}));
}

TEST_CASE("a NaN stays one after clip_value", "[optim][transforms]") {
  const exec_space exec;
  const ferry::optim::chain chain{ferry::optim::sgd{.lr = 1.0}, ferry::optim::clip_value{2.0}};
  auto table = make<ferry::mapped_space>("weights", 3, 2, std::vector<float>(6, 1.0f));
  auto state = ferry::optim::make_state(chain, table);
  const float infinity = std::numeric_limits<float>::infinity();
  const auto grads = make<ferry::device_space>(
      "grads", 2, 2, std::vector<float>{infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 1.0f});
  ferry::step(exec, chain, table, state, std::vector<std::int64_t>{0, 2}, grads).wait();
  const auto now = take(table);
  CHECK(now[0] == -1.0f);
  CHECK(now[1] == 3.0f);
  CHECK(now[2] == 1.0f);
  CHECK(now[4] != now[4]);
  CHECK(now[5] == 0.0f);
}

TEST_CASE("a step refuses transforms that do not fit", "[optim][transforms]") {
  using namespace ferry::optim;
  const exec_space exec;
  const std::vector<float> start(rows * 4, 3.0f);
  auto table = make<ferry::mapped_space>("weights", rows, 4, start);
  const sgd rule{.lr = 0.1};
  auto state = make_state(rule, table);
  const auto grads = make<ferry::device_space>("grads", 2, 4, std::vector<float>(8, 1.0f));
  const std::vector<std::int64_t> ids{1, 2};
  const auto refused = [&](const auto& transform, const std::vector<const char*>& parts) {
    CAPTURE(std::remove_cvref_t<decltype(transform)>::name);
    try {
      ferry::step(exec, chain{rule, transform}, table, state, ids, grads).wait();
      FAIL_CHECK("nothing was thrown");
    } catch (const ferry::invalid_argument& error) {
      for (const char* part : parts) CHECK_THAT(error.what(), ContainsSubstring(part));
    }
  };
  const ferry::tensor<float, ferry::mapped_space> few("few", rows - 1), many("many", rows + 1),
      wide("wide", rows, 2);
  refused(row_rates{few}, {"row_rates", "'few' [12]", "'weights' [13 x 4]"});
  refused(row_rates{many}, {"row_rates", "'many' [14]", "'weights' [13 x 4]"});
  refused(row_rates{wide}, {"row_rates", "'wide' [13 x 2]", "'weights' [13 x 4]"});
  const ferry::tensor<std::uint8_t, ferry::mapped_space> short_mask("mask", 3);
  refused(frozen_rows{short_mask}, {"frozen_rows", "'mask' [3]", "'weights' [13 x 4]"});

  const double nan = std::numeric_limits<double>::quiet_NaN();
  refused(clip_norm{-1.0}, {"clip_norm", "max_norm", "-1"});
  refused(clip_norm{nan}, {"clip_norm", "max_norm"});
  refused(clip_value{-0.5}, {"clip_value", "limit", "-0.5"});
  refused(clip_value{nan}, {"clip_value", "limit"});
  refused(max_norm{-2.0}, {"max_norm", "limit", "-2"});
  refused(max_norm{nan}, {"max_norm", "limit"});
  refused(grad_scale{0.0}, {"grad_scale", "scale", "> 0"});
  refused(grad_scale{-4.0}, {"grad_scale", "scale", "-4"});
  refused(grad_scale{nan}, {"grad_scale", "scale"});
  CHECK_THROWS_MATCHES(make_state(chain{adam{.lr = -1.0}, clip_value{1.0}}, table), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("adam") && ContainsSubstring("lr")));
  CHECK(state.steps() == 0);
  CHECK(take(table) == start);
}

/// Dense training with rates of rows, and gradients that are scaled and clipped.
template <class Space, class Path>
void catching_up_with_rates(Path path) {
  CAPTURE(Space::name, path.name);
  constexpr std::size_t width = 35;
  auto random = generator(800);
  const exec_space exec;
  std::vector<double> factors(rows);
  for (auto& factor : factors) factor = static_cast<double>(random() % 9) / 4.0;
  const auto rates = make<ferry::mapped_space>("factors", factors);
  ferry::optim::chain chain{ferry::optim::adam{.lr = 0.1}, ferry::optim::grad_scale{2.0},
                            ferry::optim::clip_norm{9.0}, ferry::optim::row_rates{rates}};
  const plain_stages plain{{plain_grad_scale(2.0), plain_clip_norm(9.0)}, factors, {}};
  const auto start = values<double>(random, rows * width);
  auto table = make<Space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(chain, table, ferry::step_count::catch_up{});
  plain_training<ferry::optim::adam, 2> dense(chain.rule, start, width);
  ferry::tensor<double, ferry::device_space> snapshot("seen", rows, width);
  std::vector<std::int64_t> every(rows);
  for (std::size_t row = 0; row < rows; ++row) every[row] = static_cast<std::int64_t>(row);
  for (int step = 1; step <= 60; ++step) {
    if (step == 25) chain.rule.lr *= 0.5;
    const auto batch = random_batch<double>(random, 3, rows - 2, width);
    ferry::step(exec, chain, table, state, batch.rows,
                make<ferry::device_space>("grads", 3, width, batch.values), path,
                ferry::step_count::catch_up{})
        .wait();
    const auto sums = summed(batch, width);
    for (std::size_t row = 0; row < rows; ++row) {
      const auto named = sums.find(row);
      step_with(plain, dense, chain.rule, step, row,
                named == sums.end() ? std::vector<double>(width, 0.0) : named->second);
    }
    if (step != 40) continue;
    const auto before = take(table);
    if constexpr (!std::is_same_v<Space, ferry::pageable_space>) {
      put(snapshot, std::vector<double>(rows * width, -77.0));
      ferry::gather(exec, chain, table, state, every, snapshot).wait();
      CHECK(farthest_apart(take(snapshot), dense.weights) < 1e-12);
    }
    CHECK(take(table) == before);
  }
  ferry::catch_up(exec, chain, table, state).wait();
  CHECK(farthest_apart(take(table), dense.weights) < 1e-12);
  for (int f = 0; f < 2; ++f)
    CHECK(farthest_apart(take(state.field(f)), dense.state[static_cast<std::size_t>(f)]) < 1e-12);
  for (const auto steps : take(state.row_steps())) CHECK(steps == 60);
}

TEST_CASE("catching up with rates of rows is dense training with them", "[optim][transforms][step_count]") {
  for_each_path<ferry::mapped_space, ferry::device_space, work::changes>(
      [](auto path) { catching_up_with_rates<ferry::mapped_space>(path); });
  catching_up_with_rates<ferry::pageable_space>(ferry::path::automatic{});
}

}  // namespace ferry_test::transform_alone_test
