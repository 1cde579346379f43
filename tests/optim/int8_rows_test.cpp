// SPDX-License-Identifier: Apache-2.0
#include "optim/int8_kit.hpp"
#include "optim/transform_kit.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/int8.hpp>

namespace ferry_test::int8_rows_test {

// 8-bit rows that are constant or spoiled, rules and transforms that see whole rows, and what does not fit.

using space = ferry::mapped_space;
constexpr std::size_t rows = 9;

ferry::rowwise_int8_tensor<space> table_of(const plain_records& content) {
  ferry::rowwise_int8_tensor<space> result("codes", content.rows(), content.width);
  put(result.records(), content.bytes);
  return result;
}
plain_records records_of(const ferry::rowwise_int8_tensor<space>& table) {
  plain_records result(table.rows(), table.width());
  result.bytes = take(table.records());
  return result;
}

TEST_CASE("constant and spoiled rows of 8 bits", "[optim][int8]") {
  const exec_space exec;
  const ferry::optim::sgd rule{.lr = 1.0};
  for (const std::size_t width : {1u, 4u, 30u, 131u}) {
    auto random = generator(1300 + width);
    auto start = random_records(random, rows, width);
    start.set(0, 0.0f, 1.25f);  // constant, whatever the codes say
    start.set(1, 0.0f, 0.5f);
    start.set(2, NAN, NAN);
    auto table = table_of(start);
    auto state = ferry::optim::make_state(rule, table);
    std::vector<float> gradients(5 * width, 0.75f);
    for (std::size_t c = 0; c < width; ++c) {
      gradients[width + c] = static_cast<float>(c);  // row 1 gets a range
      gradients[3 * width + c] = start.value(3, c) > 0 ? 1.0f : 2.0f;
      gradients[4 * width + c] = static_cast<float>(start.value(4, c));  // row 4 becomes zero
    }
    gradients[3 * width + width / 2] = std::numeric_limits<float>::infinity();
    ferry::step(exec, rule, table, state, std::vector<std::int64_t>{0, 1, 2, 3, 4},
                make<ferry::device_space>("grads", 5, width, gradients))
        .wait();
    const auto now = records_of(table);
    CAPTURE(width);
    CHECK(now.scale(0) == 0.0f);
    CHECK(now.offset(0) == 0.5f);
    CHECK(now.offset(1) == 0.5f - static_cast<float>(width - 1));
    CHECK(now.scale(1) == static_cast<float>(static_cast<double>(width - 1) / 255.0));
    for (const std::size_t row : {2u, 3u}) {
      CHECK(now.scale(row) != now.scale(row));
      CHECK(now.offset(row) != now.offset(row));
    }
    CHECK(now.scale(4) == 0.0f);
    CHECK(now.offset(4) == 0.0f);
    CHECK_FALSE(std::signbit(now.offset(4)));
    for (const std::size_t row : {0u, 2u, 3u, 4u})
      for (std::size_t column = 0; column < width; ++column) CHECK(now.code(row, column) == 0);
    for (std::size_t row = 5; row < rows; ++row)
      for (std::size_t offset = row * now.row_bytes; offset < (row + 1) * now.row_bytes; ++offset)
        if (now.bytes[offset] != start.bytes[offset])
          FAIL_CHECK("byte " << offset << " of a row that was not named");
  }
}

TEST_CASE("stochastic codes have the right mean", "[optim][int8]") {
  // A row from 0 to 255 in units of one, and elements that lie between two codes.
  const exec_space exec;
  const ferry::optim::sgd rule{.lr = 1.0};
  constexpr std::size_t many = 500, width = 402;
  plain_records start(many, width);
  for (std::size_t row = 0; row < many; ++row) {
    start.set(row, 1.0f, 0.0f);
    for (std::size_t c = 0; c < width; ++c)
      start.bytes[row * start.row_bytes + c] = static_cast<std::byte>(c == 0 ? 0 : c == 1 ? 255 : 100);
  }
  auto table = table_of(start);
  auto state = ferry::optim::make_state(rule, table);
  auto random = generator(1310);
  state.set_seed(random());
  std::vector<float> gradients(many * width, 0.0f);
  std::vector<std::int64_t> every(many);
  for (std::size_t row = 0; row < many; ++row) {
    every[row] = static_cast<std::int64_t>(row);
    for (std::size_t c = 2; c < width; ++c) gradients[row * width + c] = -0.3125f;
  }
  ferry::step(exec, rule, table, state, every, make<ferry::device_space>("grads", many, width, gradients),
              ferry::rounding::stochastic{})
      .wait();
  const auto now = records_of(table);
  double up = 0.0;
  for (std::size_t row = 0; row < many; ++row) {
    REQUIRE(now.scale(row) == 1.0f);
    CHECK(now.code(row, 0) == 0);
    CHECK(now.code(row, 1) == 255);
    for (std::size_t c = 2; c < width; ++c) {
      REQUIRE((now.code(row, c) == 100 || now.code(row, c) == 101));
      up += now.code(row, c) - 100;
    }
  }
  const double count = static_cast<double>(many) * (width - 2);
  CHECK(std::fabs(up / count - 0.3125) < 5.0 * std::sqrt(0.3125 * 0.6875 / count));
}

TEST_CASE("rules and transforms that see whole rows, on 8-bit rows", "[optim][int8]") {
  const exec_space exec;
  for_each_path<space, ferry::device_space, work::changes>([&](auto path) {
    for (const std::size_t width : {1u, 4u, 30u, 131u}) {
      CAPTURE(path.name, width);
      auto random = generator(1320 + width);
      auto start = random_records(random, rows, width);
      auto table = table_of(start);
      std::vector<float> factors(rows, 0.5f);
      factors[3] = 2.0f;
      std::vector<std::uint8_t> mask(rows, 0);
      mask[5] = mask[6] = 1;
      const auto rates = make<ferry::mapped_space>("factors", factors);
      const auto frozen = make<ferry::mapped_space>("mask", mask);
      const ferry::optim::chain rule{ferry::optim::rowwise_adagrad{.lr = 0.3, .weight_decay = 0.1},
                                     ferry::optim::clip_norm{1.5}, ferry::optim::row_rates{rates},
                                     ferry::optim::frozen_rows{frozen}, ferry::optim::max_norm{2.5}};
      const plain_stages plain{{plain_clip_norm(1.5)}, {factors.begin(), factors.end()}, mask, 2.5};
      auto state = ferry::optim::make_state(rule, table);
      std::vector<double> row_moments(rows, 0.0);
      std::vector<std::uint32_t> counts(rows, 0);
      for (int step = 1; step <= 3; ++step) {
        const auto before = records_of(table);
        const auto batch = random_batch<float>(random, 12, rows, width);
        ferry::step(exec, rule, table, state, batch.rows,
                    make<ferry::device_space>("grads", 12, width, batch.values), path,
                    ferry::step_count::per_row{})
            .wait();
        const auto after = records_of(table);
        const auto sums = summed(batch, width);
        for (std::size_t row = 0; row < rows; ++row) {
          const auto named = sums.find(row);
          if (named == sums.end() || mask[row] != 0) {
            for (std::size_t offset = row * after.row_bytes; offset < (row + 1) * after.row_bytes; ++offset)
              if (after.bytes[offset] != before.bytes[offset])
                FAIL_CHECK("a byte of row " << row << " was changed");
            continue;
          }
          ++counts[row];
          std::vector<double> weights(width);
          for (std::size_t c = 0; c < width; ++c) weights[c] = before.value(row, c);
          plain_rowwise_adagrad model(rule.rule, weights, width);
          model.sums[0] = row_moments[row];
          plain_stages of_row = plain;
          of_row.factors = {plain.factors[row]};
          of_row.frozen.clear();
          step_with(of_row, model, rule.rule, step, 0, named->second);
          row_moments[row] = model.sums[0];
          // Half a quantum, and what float makes of the weights.
          for (std::size_t c = 0; c < width; ++c)
            CHECK(std::fabs(after.value(row, c) - model.weights[c]) <=
                  0.501 * static_cast<double>(after.scale(row)) + 1e-5);
        }
      }
      const auto sums = take(state.field("sum"));
      for (std::size_t row = 0; row < rows; ++row)
        CHECK(std::fabs(static_cast<double>(sums[row]) - row_moments[row]) <=
              1e-4 * std::fmax(1.0, row_moments[row]));
      CHECK(take(state.row_steps()) == counts);
    }
  });
}

TEST_CASE("gradients of other types on 8-bit rows", "[optim][int8]") {
  const exec_space exec;
  const ferry::optim::sgd rule{.lr = 0.25};
  auto random = generator(1330);
  const auto start = random_records(random, rows, 30);
  const auto check = [&]<class Value>(Value) {
    auto table = table_of(start);
    auto state = ferry::optim::make_state(rule, table);
    const auto batch = random_batch<Value>(random, 7, rows, 30);
    ferry::step(exec, rule, table, state, batch.rows, make<ferry::device_space>("grads", 7, 30, batch.values))
        .wait();
    auto expected = start;
    std::map<std::size_t, std::vector<double>> sums;
    for (std::size_t p = 0; p < 7; ++p) {
      auto& row = sums[static_cast<std::size_t>(batch.rows[p])];
      row.resize(30);
      for (std::size_t c = 0; c < 30; ++c) row[c] += number(batch.values[p * 30 + c]);
    }
    for (const auto& [row, sum] : sums) {
      std::vector<float> weights;
      for (std::size_t c = 0; c < 30; ++c)
        if constexpr (std::is_same_v<Value, double>)
          weights.push_back(static_cast<float>(start.value(row, c) - 0.25 * sum[c]));
        else
          weights.push_back(static_cast<float>(start.value(row, c)) - 0.25f * static_cast<float>(sum[c]));
      expected.encode(row, weights, to_nearest);
    }
    CHECK(take(table.records()) == expected.bytes);
  };
  check(double{});
  check(ferry::half_t(0.0f));
}

TEST_CASE("what does not fit 8-bit rows is refused", "[optim][int8]") {
  const exec_space exec;
  const ferry::optim::adam rule;
  auto random = generator(1340);
  const auto start = random_records(random, rows, 30);
  auto table = table_of(start);
  auto state = ferry::optim::make_state(rule, table);
  CHECK(state.field(0).width() == 30);
  CHECK(state.field(0).rows() == rows);
  const std::vector<std::int64_t> ids{1, 2}, bad{1, 9};
  const ferry::tensor<float, ferry::device_space> wide("wide", 2, 32);
  const auto fine = make<ferry::device_space>("fine", 2, 30, std::vector<float>(60, 1.0f));
  CHECK_THROWS_MATCHES(ferry::step(exec, rule, table, state, ids, wide), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'wide' [2 x 32]") && ContainsSubstring("30")));
  ferry::rowwise_int8_tensor<space> longer("longer", rows + 1, 30);
  CHECK_THROWS_MATCHES(
      ferry::step(exec, rule, longer, state, ids, fine), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("'longer' [10 x 30]") && ContainsSubstring("exp_avg")));
  CHECK_THROWS_AS(ferry::step(exec, rule, table, state, bad, fine).wait(), ferry::out_of_range);
  CHECK(state.steps() == 0);
  CHECK(take(table.records()) == start.bytes);
}

}  // namespace ferry_test::int8_rows_test
