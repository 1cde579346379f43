// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/int8.hpp>

/// Spoiled gradients of several types, with rules, transforms and tables that need another kernel.
namespace ferry_test::nonfinite_rows_test {

constexpr std::size_t rows = 12, width = 35, n = 9;

template <class Value>
std::vector<Value> bad_values() {
  const double infinity = std::numeric_limits<double>::infinity();
  return {element<Value>(infinity), element<Value>(-infinity),
          element<Value>(std::numeric_limits<double>::quiet_NaN())};
}

/// One bad value in row `row`: nothing but that row is spoiled, and there by sgd no other column.
template <class Value, class Space, class Path>
void only_one_is_spoiled(Path path) {
  CAPTURE(Space::name, path.name);
  auto random = generator(920);
  const exec_space exec;
  const ferry::optim::sgd rule{.lr = 0.5};
  for (const auto bad : bad_values<Value>()) {
    const auto start = values<float>(random, rows * width);
    auto table = make<Space>("weights", rows, width, start);
    auto state = ferry::optim::make_state(rule, table);
    auto batch = random_batch<Value>(random, n, rows, width);
    const std::size_t position = random() % n, column = random() % width;
    const auto spoiled_row = static_cast<std::size_t>(batch.rows[position]);
    batch.values[position * width + column] = bad;
    ferry::step(exec, rule, table, state, batch.rows,
                make<ferry::device_space>("grads", n, width, batch.values), path, ferry::nonfinite::keep{})
        .wait();
    CHECK(state.steps() == 1);
    std::vector<double> expected(start.begin(), start.end());
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t c = 0; c < width; ++c)
        expected[static_cast<std::size_t>(batch.rows[p]) * width + c] -=
            0.5 * number(batch.values[p * width + c]);
    const auto now = take(table);
    for (std::size_t i = 0; i < now.size(); ++i)
      if (i == spoiled_row * width + column)
        CHECK_FALSE(std::isfinite(now[i]));
      else
        CHECK(static_cast<double>(now[i]) == expected[i]);
  }
}

/// run(path): floats take every path, other types one on either side.
template <class Value, class Run>
void on_paths_for(const Run& run) {
  if constexpr (std::is_same_v<Value, float>) {
    for_each_path<ferry::mapped_space, ferry::device_space, work::changes>(run);
  } else {
    run(ferry::path::direct{});
    run(ferry::path::staged{});
  }
}

template <class Value>
void types_of_gradients() {
  on_paths_for<Value>([](auto path) { only_one_is_spoiled<Value, ferry::mapped_space>(path); });
}

template <class Value>
std::string name_of(const Value& bad) {
  const double value = number(bad);
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/// skip and reject for a rule, with or without transforms, and for gradients of Value.
template <class Value, class Rule, class Table, class State, class Take, class Path>
void left_out(const Rule& rule, Table& table, State& state, const Take& bytes, Path path) {
  CAPTURE(path.name);
  auto random = generator(930);
  const exec_space exec;
  const auto before = bytes();
  for (const auto bad : bad_values<Value>()) {
    auto batch = random_batch<Value>(random, n, rows, width);
    batch.values[4 * width + 11] = bad;
    const auto grads = make<ferry::device_space>("grads", n, width, batch.values);
    const auto steps = state.steps(), skipped = state.skipped();
    ferry::step(exec, rule, table, state, batch.rows, grads, path, ferry::nonfinite::skip{}).wait();
    CHECK(state.steps() == steps);
    CHECK(state.skipped() == skipped + 1);
    CHECK(bytes() == before);
    CHECK_THROWS_MATCHES(
        ferry::step(exec, rule, table, state, batch.rows, grads, path, ferry::nonfinite::reject{}).wait(),
        ferry::invalid_argument,
        MessageMatches(ContainsSubstring("1 of the elements of 'grads' [9 x 35]") &&
                       ContainsSubstring("the first is " + name_of(bad) + " in column 11 at position 4")));
    CHECK(state.steps() == steps);
    CHECK(state.skipped() == skipped + 1);
    CHECK(bytes() == before);
  }
  const auto steps = state.steps();
  const auto fine = random_batch<Value>(random, n, rows, width);
  ferry::step(exec, rule, table, state, fine.rows, make<ferry::device_space>("grads", n, width, fine.values),
              path, ferry::nonfinite::skip{})
      .wait();
  CHECK(state.steps() == steps + 1);
  CHECK(bytes() != before);
}

TEST_CASE("a kept infinity spoils its element alone", "[optim][nonfinite]") {
  types_of_gradients<float>();
  types_of_gradients<ferry::half_t>();
  types_of_gradients<double>();
}

TEST_CASE("gradients of every type are looked at", "[optim][nonfinite]") {
  const ferry::optim::chain rule{ferry::optim::sgd{.lr = 0.1}, ferry::optim::grad_scale{1024.0}};
  auto random = generator(940);
  auto table = make<ferry::mapped_space>("weights", rows, width, values<float>(random, rows * width));
  auto state = ferry::optim::make_state(rule, table);
  const auto bytes = [&] { return take(table); };
  const auto of_type = [&]<class Value>(std::type_identity<Value>) {
    on_paths_for<Value>([&](auto path) { left_out<Value>(rule, table, state, bytes, path); });
  };
  of_type(std::type_identity<float>{});
  of_type(std::type_identity<ferry::half_t>{});
  of_type(std::type_identity<double>{});
}

TEST_CASE("steps on whole rows are left out, too", "[optim][nonfinite]") {
  auto random = generator(950);
  const exec_space exec;
  const auto start = values<float>(random, rows * width);
  const ferry::optim::chain rule{ferry::optim::rowwise_adagrad{.lr = 0.1}, ferry::optim::grad_scale{8.0},
                                 ferry::optim::clip_norm{1.0}};
  auto table = make<ferry::mapped_space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", rows, width);
  ferry::quantize(exec, table, codes).wait();
  auto state_of_codes = ferry::optim::make_state(rule, codes);
  const auto records = [&] {
    auto bytes = take(codes.records());
    for (const float v : take(state_of_codes.field("sum")))
      bytes.push_back(static_cast<std::byte>(v != 0.0f));
    return bytes;
  };
  const auto numbers = [&] {
    auto weights = take(table);
    for (const float v : take(state.field("sum"))) weights.push_back(v);
    return weights;
  };
  for_each_path<ferry::mapped_space, ferry::device_space, work::changes>([&](auto path) {
    left_out<float>(rule, table, state, numbers, path);
    left_out<float>(rule, codes, state_of_codes, records, path);
  });
}

TEST_CASE("a sum that overflows is no spoiled gradient", "[optim][nonfinite]") {
  const exec_space exec;
  const ferry::optim::sgd rule{.lr = 1.0};
  auto table = make<ferry::mapped_space>("weights", 2, 1, std::vector<float>{1.0f, 2.0f});
  auto state = ferry::optim::make_state(rule, table);
  const float large = std::numeric_limits<float>::max();
  ferry::step(exec, rule, table, state, std::vector<std::int64_t>{1, 1},
              make<ferry::device_space>("grads", 2, 1, std::vector<float>{large, large}),
              ferry::nonfinite::reject{})
      .wait();
  CHECK(state.steps() == 1);
  CHECK(take(table) == std::vector<float>{1.0f, -std::numeric_limits<float>::infinity()});
}

}  // namespace ferry_test::nonfinite_rows_test
