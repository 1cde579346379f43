// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/folder.hpp"
#include "support/random.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

/// A program that was compiled without optimisation, with the loops for AVX2.
namespace ferry_test::unoptimised_test {

namespace {

constexpr std::size_t rows = 50, batch = 20;

std::vector<std::int32_t> some_rows() {
  std::vector<std::int32_t> made;
  for (std::size_t p = 0; p < batch; ++p)
    made.push_back(static_cast<std::int32_t>(p * 7 % rows));  // distinct
  return made;
}

/// The largest error of a step of `rule` next to `expected(weight, gradient)`, over widths around a register.
template <class Rule, class Expected>
double error_of_step(const Rule& rule, const Expected& expected) {
  const exec_space exec;
  auto random = generator(391);
  const auto named = some_rows();
  double worst = 0;
  for (const std::size_t width : {1, 3, 4, 8, 9, 16, 31, 64}) {
    const auto before = values<float>(random, rows * width);
    const auto grads = values<float>(random, batch * width);
    auto table = make<ferry::mapped_space>("table", rows, width, before);
    auto state = ferry::optim::make_state(rule, table);
    ferry::step(exec, rule, table, state, named, make<ferry::device_space>("grads", batch, width, grads))
        .wait();
    const auto after = take(table);
    std::vector<double> wanted(before.begin(), before.end());
    for (std::size_t p = 0; p < batch; ++p)
      for (std::size_t i = 0; i < width; ++i) {
        double& weight = wanted[static_cast<std::size_t>(named[p]) * width + i];
        weight = expected(weight, static_cast<double>(grads[p * width + i]));
      }
    for (std::size_t i = 0; i < after.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(after[i]) - wanted[i]));
  }
  return worst;
}

}  // namespace

TEST_CASE("steps of rules without and with state", "[flags]") {
  CHECK(error_of_step(ferry::optim::sgd{.lr = 0.1}, [](double w, double g) { return w - 0.1 * g; }) < 1e-6);
  CHECK(error_of_step(ferry::optim::adam{.lr = 0.1}, [](double w, double g) {
          return w - 0.1 * g / (std::abs(g) + 1e-8);  // the first step
        }) < 1e-5);
}

TEST_CASE("gather, a loader and a checkpoint", "[flags]") {
  const exec_space exec;
  const temporary_folder at;
  auto random = generator(392);
  const auto contents = values<float>(random, rows * 5);
  auto table = make<ferry::mapped_space>("table", rows, 5, contents);
  ferry::io::checkpoint run(at.path() + "/run");
  run.add("table", table);
  run.save();
  ferry::init::zeros(exec, table);
  run.load();
  const std::vector<std::int32_t> samples = some_rows();
  ferry::row_prefetcher batches(exec, table, ferry::samples_of(samples), {.batch = 5, .epochs = 1});
  std::size_t seen = 0;
  while (auto got = batches.next()) {
    ferry::tensor<float, ferry::device_space> gathered("gathered", 5, 5);
    ferry::gather(exec, table, got->plan(), gathered).wait();
    ferry::tensor<float, ferry::device_space> ahead("ahead", 5, 5);
    ferry::copy(exec, got->gathered(), ahead).wait();
    const auto rows_now = take(gathered), rows_ahead = take(ahead);
    CHECK(rows_now == rows_ahead);
    for (std::size_t p = 0; p < 5; ++p, ++seen)
      for (std::size_t i = 0; i < 5; ++i)
        CHECK(rows_now[p * 5 + i] == contents[static_cast<std::size_t>(samples[seen]) * 5 + i]);
  }
  CHECK(seen == batch);
}

}  // namespace ferry_test::unoptimised_test
