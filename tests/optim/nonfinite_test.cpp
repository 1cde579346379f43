// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/int8.hpp>

/// Infinities and NaNs among gradients, kept, skipped and rejected, on every path, by several rules and types.
namespace ferry_test::nonfinite_test {

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
std::string name_of(const Value& bad) {
  const double value = number(bad);
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/// Steps with gradients of Value are left out or rejected, and the next one is an ordinary one. `bytes` reads the table and its
/// state; `named` has n rows.
template <class Value, class Rule, class Table, class State, class Bytes, class Named, class... Policies>
void left_out(const Rule& rule, Table& table, State& state, const Bytes& bytes, const Named& named,
              Policies... policies) {
  auto random = generator(930);
  const exec_space exec;
  const auto before = bytes();
  const auto steps = state.steps(), skipped = state.skipped();
  const auto grads_of = [&](const std::vector<Value>& numbers) {
    return make<ferry::device_space>("grads", n, width, numbers);
  };
  const auto unchanged = [&](std::int64_t more) {
    CHECK(state.steps() == steps);
    CHECK(state.skipped() == skipped + more);
    CHECK(bytes() == before);
  };
  std::int64_t count = 0;
  for (const auto bad : bad_values<Value>()) {
    auto gradients = values<Value>(random, n * width);
    // A later one, so that the first is the one that is told.
    gradients[4 * width + 11] = gradients[n * width - 1] = bad;
    ferry::step(exec, rule, table, state, named, grads_of(gradients), ferry::nonfinite::skip{}, policies...)
        .wait();
    unchanged(++count);
    CHECK_THROWS_MATCHES(
        ferry::step(exec, rule, table, state, named, grads_of(gradients), ferry::nonfinite::reject{},
                    policies...)
            .wait(),
        ferry::invalid_argument,
        MessageMatches(ContainsSubstring("2 of the elements of 'grads' [9 x 35]") &&
                       ContainsSubstring("the first is " + name_of(bad) + " in column 11 at position 4")));
    unchanged(count);
  }
  const auto fine = grads_of(values<Value>(random, n * width));
  ferry::step(exec, rule, table, state, named, fine, ferry::nonfinite::skip{}, policies...).wait();
  ferry::step(exec, rule, table, state, named, fine, ferry::nonfinite::reject{}, policies...).wait();
  CHECK(state.steps() == steps + 2);
  CHECK(state.skipped() == skipped + count);
  CHECK(bytes() != before);
}

TEST_CASE("a kept infinity spoils its element alone", "[optim][nonfinite]") {
  const auto check = []<class Value>(std::type_identity<Value>) {
    on_paths_for<Value>([](auto path) { only_one_is_spoiled<Value, ferry::mapped_space>(path); });
  };
  check(std::type_identity<float>{});
  check(std::type_identity<ferry::half_t>{});
  check(std::type_identity<double>{});
}

TEST_CASE("gradients of every type are looked at", "[optim][nonfinite]") {
  const ferry::optim::chain rule{ferry::optim::sgd{.lr = 0.1}, ferry::optim::grad_scale{1024.0}};
  auto random = generator(940);
  auto table = make<ferry::mapped_space>("weights", rows, width, values<float>(random, rows * width));
  auto state = ferry::optim::make_state(rule, table);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto of_type = [&]<class Value>(std::type_identity<Value>) {
    on_paths_for<Value>([&](auto path) {
      CAPTURE(path.name);
      left_out<Value>(
          rule, table, state, [&] { return take(table); }, ids, path);
    });
  };
  of_type(std::type_identity<float>{});
  of_type(std::type_identity<ferry::half_t>{});
  of_type(std::type_identity<double>{});
}

/// Weights, state and counters of a state.
template <class Table, class State>
std::vector<float> all_of(const Table& table, const State& state) {
  auto numbers = take(table);
  for (int f = 0; f < 2; ++f)
    for (const float element : take(state.field(f))) numbers.push_back(element);
  for (const auto count : take(state.row_steps())) numbers.push_back(static_cast<float>(count));
  return numbers;
}

TEMPLATE_TEST_CASE("steps with spoiled gradients are left out, however their rows are named",
                   "[optim][nonfinite]", ferry::device_space, ferry::mapped_space, ferry::pageable_space) {
  auto random = generator(900);
  const exec_space exec;
  const ferry::optim::adam rule{.lr = 0.1};
  const ferry::step_count::per_row count;
  auto table = make<TestType>("weights", rows, width, values<float>(random, rows * width));
  auto state = ferry::optim::make_state(rule, table, count);
  const auto ids = unique_indices<std::int64_t>(random, n, rows);
  const ferry::duplicates::assume_unique unique;
  const ferry::bounds::unchecked unchecked;
  const auto each_way = [&](auto path) {
    CAPTURE(TestType::name, path.name);
    const auto run = [&](const char* way, const auto& named, auto... policies) {
      INFO(way);
      left_out<float>(
          rule, table, state, [&] { return all_of(table, state); }, named, path, count, policies...);
    };
    run("indices", ids);
    run("assume_unique, unchecked", ids, unique, unchecked);
    if constexpr (std::is_same_v<TestType, ferry::mapped_space>) {
      run("plan", ferry::make_plan(exec, ids, rows));
      run("assume_unique", ids, unique);
      run("unchecked", ids, unchecked);
    }
  };
  if constexpr (std::is_same_v<TestType, ferry::mapped_space>)
    for_each_path<TestType, ferry::device_space, work::changes>(each_way);
  else
    each_way(ferry::path::automatic{});
}

TEST_CASE("a bad index wins over a spoiled gradient", "[optim][nonfinite]") {
  auto random = generator(910);
  const exec_space exec;
  const ferry::optim::adam rule{.lr = 0.1};
  const auto start = values<float>(random, rows * width);
  auto table = make<ferry::mapped_space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  auto ids = unique_indices<std::int64_t>(random, n, rows);
  ids[2] = 77;
  auto gradients = values<float>(random, n * width);
  gradients[3] = std::numeric_limits<float>::quiet_NaN();
  const auto grads = make<ferry::device_space>("grads", n, width, gradients);
  const auto plan = ferry::make_plan(exec, ids, rows);
  for_each_path<ferry::mapped_space, ferry::device_space, work::changes>([&](auto path) {
    const auto refused = [&](const auto& named, auto... policies) {
      CHECK_THROWS_MATCHES(ferry::step(exec, rule, table, state, named, grads, path, policies...).wait(),
                           ferry::out_of_range, MessageMatches(ContainsSubstring("index 77 at position 2")));
      CHECK(take(table) == start);
      CHECK(state.steps() == 0);
      CHECK(state.skipped() == 0);
    };
    const auto check = [&](auto policy) {
      CAPTURE(path.name, policy.name);
      refused(ids, policy);
      refused(plan, policy);
      refused(ids, policy, ferry::duplicates::assume_unique{});
    };
    check(ferry::nonfinite::skip{});
    check(ferry::nonfinite::reject{});
  });
}

TEST_CASE("steps on whole rows are left out, too", "[optim][nonfinite]") {
  auto random = generator(950);
  const exec_space exec;
  const auto start = values<float>(random, rows * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const ferry::optim::chain rule{ferry::optim::rowwise_adagrad{.lr = 0.1}, ferry::optim::grad_scale{8.0},
                                 ferry::optim::clip_norm{1.0}};
  auto table = make<ferry::mapped_space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", rows, width);
  ferry::quantize(exec, table, codes).wait();
  auto state_of_codes = ferry::optim::make_state(rule, codes);
  const auto records = [&] { return std::pair(take(codes.records()), take(state_of_codes.field("sum"))); };
  const auto numbers = [&] { return std::pair(take(table), take(state.field("sum"))); };
  for_each_path<ferry::mapped_space, ferry::device_space, work::changes>([&](auto path) {
    CAPTURE(path.name);
    left_out<float>(rule, table, state, numbers, ids, path);
    left_out<float>(rule, codes, state_of_codes, records, ids, path);
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

}  // namespace ferry_test::nonfinite_test
