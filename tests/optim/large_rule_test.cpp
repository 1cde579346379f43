// SPDX-License-Identifier: Apache-2.0
#include "optim/large_rules.hpp"
#include "optim/step_kit.hpp"
#include "support/test.hpp"

/// Rules whose kernels take many options or many registers, on every path, against plain loops.
namespace ferry_test::large_rule_test {

constexpr std::size_t rows = 300, n = 500;

/// Four steps with repeated rows.
template <class Space, class Rule, class Path>
void train(const Rule& rule, std::size_t width, Path path) {
  CAPTURE(Space::name, path.name, width);
  auto random = generator(60 + width);
  const exec_space exec;
  auto expected = values<double>(random, rows * width);
  std::vector<std::vector<double>> fields(rows);
  auto table = make<Space>("weights", rows, width, expected);
  auto state = ferry::optim::make_state(rule, table);
  for (int step = 0; step < 4; ++step) {
    const auto batch = random_batch<double>(random, n, rows, width);
    const auto device_grads = make<ferry::device_space>("grads", n, width, batch.values);
    ferry::step(exec, rule, table, state, ferry::make_plan(exec, batch.rows, rows), device_grads, path)
        .wait();
    for (const auto& [row, gradient] : summed(batch, width))
      rule.follow(fields[row], expected.data() + row * width, gradient);
  }
  CHECK(farthest_apart(take(table), expected) < 1e-12);
}

/// Every path takes the kernel's options in the same way: all of them for one rule of each kind.
template <class Rule>
void train_everywhere(const Rule& rule) {
  for (const std::size_t width : {3u, 40u}) {
    train<ferry::device_space>(rule, width, ferry::path::direct{});
    train<ferry::pinned_space>(rule, width, ferry::path::staged{});
  }
}
template <class Rule>
void train_on_every_path(const Rule& rule) {
  for_each_path<ferry::mapped_space, ferry::device_space, work::changes>([&](auto path) {
    for (const std::size_t width : {3u, 40u}) train<ferry::mapped_space>(rule, width, path);
  });
}

TEST_CASE("rules with many options", "[optim][own][large]") {
  train_everywhere(polynomial_rule<20>{});
  train_on_every_path(polynomial_rule<60>{});
}
TEST_CASE("rules with many options that look at whole rows", "[optim][own][large]") {
  train_everywhere(averages_rule<1, 24>{});
}
// 512 threads with 128 registers each fill a block; what such a rule would take is more.
TEST_CASE("rules with many arrays of state that look at whole rows", "[optim][own][large]") {
  train_everywhere(averages_rule<6, 1>{});
  train_on_every_path(averages_rule<8, 1>{});
}

}  // namespace ferry_test::large_rule_test
