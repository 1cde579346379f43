// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/folder.hpp"
#include "support/random.hpp"

#include <ferry/io.hpp>
#include <ferry/loader.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

/// A program that was compiled without optimisation, with the loops for AVX2.
namespace ferry_test::unoptimised_test {

constexpr std::size_t rows = 50, batch = 20;

std::vector<std::int32_t> some_rows() {
  std::vector<std::int32_t> numbers;
  for (std::size_t p = 0; p < batch; ++p)
    numbers.push_back(static_cast<std::int32_t>(p * 7 % rows));  // distinct
  return numbers;
}

/// The largest error of a step of `rule` next to `expected(weight, gradient)`, over widths around a register.
template <class Rule, class Expected>
double error_of_step(const Rule& rule, const Expected& expected) {
  const exec_space exec;
  auto random = generator(391);
  const auto row_numbers = some_rows();
  double worst = 0;
  for (const std::size_t width : {1, 3, 4, 8, 9, 16, 31, 64}) {
    const auto start = values<float>(random, rows * width);
    const auto grads = values<float>(random, batch * width);
    auto table = make<ferry::mapped_space>("table", rows, width, start);
    auto state = ferry::optim::make_state(rule, table);
    ferry::step(exec, rule, table, state, row_numbers,
                make<ferry::device_space>("grads", batch, width, grads))
        .wait();
    const auto weights = take(table);
    std::vector<double> oracle(start.begin(), start.end());
    for (std::size_t p = 0; p < batch; ++p)
      for (std::size_t i = 0; i < width; ++i) {
        double& weight = oracle[static_cast<std::size_t>(row_numbers[p]) * width + i];
        weight = expected(weight, static_cast<double>(grads[p * width + i]));
      }
    for (std::size_t i = 0; i < weights.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(weights[i]) - oracle[i]));
  }
  return worst;
}

TEST_CASE("steps of rules without and with state", "[flags]") {
  CHECK(error_of_step(ferry::optim::sgd{.lr = 0.1}, [](double w, double g) { return w - 0.1 * g; }) < 1e-6);
  CHECK(error_of_step(ferry::optim::adam{.lr = 0.1}, [](double w, double g) {
          return w - 0.1 * g / (std::abs(g) + 1e-8);  // the first step
        }) < 1e-5);
}

TEST_CASE("gather, a loader and a checkpoint", "[flags]") {
  const exec_space exec;
  const temporary_folder folder;
  auto random = generator(392);
  const auto contents = values<float>(random, rows * 5);
  auto table = make<ferry::mapped_space>("table", rows, 5, contents);
  ferry::io::checkpoint run(folder.path() + "/run");
  run.add("table", table);
  run.save();
  ferry::init::zeros(exec, table);
  run.load();
  const std::vector<std::int32_t> samples = some_rows();
  ferry::row_prefetcher batches(exec, table, ferry::samples_of(samples), {.batch = 5, .epochs = 1});
  std::size_t position = 0;
  while (auto step = batches.next()) {
    ferry::tensor<float, ferry::device_space> batch_rows("gathered", 5, 5);
    ferry::gather(exec, table, step->plan(), batch_rows).wait();
    ferry::tensor<float, ferry::device_space> prefetched_rows("ahead", 5, 5);
    ferry::copy(exec, step->gathered(), prefetched_rows).wait();
    const auto rows_of_table = take(batch_rows), rows_of_loader = take(prefetched_rows);
    CHECK(rows_of_table == rows_of_loader);
    for (std::size_t p = 0; p < 5; ++p, ++position)
      for (std::size_t i = 0; i < 5; ++i)
        CHECK(rows_of_table[p * 5 + i] == contents[static_cast<std::size_t>(samples[position]) * 5 + i]);
  }
  CHECK(position == batch);
}

}  // namespace ferry_test::unoptimised_test
