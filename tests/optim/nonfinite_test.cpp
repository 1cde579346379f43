// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

/// Infinities and NaNs among gradients, kept, skipped and rejected, on every path.
namespace ferry_test::nonfinite_test {

constexpr std::size_t rows = 12, width = 37, n = 6;
const ferry::optim::adam rule{.lr = 0.1};

template <class T, class Space>
struct training {
  ferry::tensor<T, Space> table;
  ferry::optim::state<ferry::optim::adam, T, Space> state;
  std::vector<T> weights, first, second;
  std::vector<std::uint32_t> counts;

  explicit training(std::mt19937_64& random) {
    table = make<Space>("weights", rows, width, values<T>(random, rows * width));
    state = ferry::optim::make_state(rule, table, ferry::step_count::per_row{});
    put(state.field(0), values<T>(random, rows * width));
    put(state.field(1), std::vector<T>(rows * width, T(3)));
    remember();
  }
  void remember() {
    weights = take(table);
    first = take(state.field(0));
    second = take(state.field(1));
    counts = take(state.row_steps());
  }
  [[nodiscard]] bool unchanged() const {
    return take(table) == weights && take(state.field(0)) == first && take(state.field(1)) == second &&
           take(state.row_steps()) == counts;
  }
};

/// Gradients with bad values at the given places, row-major.
template <class Value>
std::vector<Value> spoiled(std::mt19937_64& random, const std::vector<std::size_t>& places, bool nan) {
  auto result = values<Value>(random, n * width);
  const double bad =
      nan ? std::numeric_limits<double>::quiet_NaN() : -std::numeric_limits<double>::infinity();
  for (const auto place : places) result[place] = element<Value>(bad);
  return result;
}

/// step() throws Error with all the parts, and is taken back.
template <class Error, class Of, class Step>
void fails(Of& training, const Step& step, const std::vector<std::string>& parts) {
  const auto steps = training.state.steps();
  const auto skipped = training.state.skipped();
  try {
    step();
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& error) {
    for (const auto& part : parts) CHECK_THAT(error.what(), ContainsSubstring(part));
  }
  CHECK(training.state.steps() == steps);
  CHECK(training.state.skipped() == skipped);
  CHECK(training.unchanged());
}

/// Every way from indices to kernels: sorted, planned, promised to be unique, unchecked. Where the table lies makes a
/// difference to the first and the last.
template <class Space, class Path, class Run>
void each_way(Path path, const std::vector<std::int64_t>& ids, const Run& run) {
  const exec_space exec;
  CAPTURE(Space::name, path.name);
  {
    INFO("indices");
    run(ids, path);
  }
  if constexpr (std::is_same_v<Space, ferry::mapped_space>) {
    {
      INFO("plan");
      run(ferry::make_plan(exec, ids, rows), path);
    }
    {
      INFO("assume_unique");
      run(ids, path, ferry::duplicates::assume_unique{});
    }
    {
      INFO("unchecked");
      run(ids, path, ferry::bounds::unchecked{});
    }
  }
  {
    INFO("assume_unique, unchecked");
    run(ids, path, ferry::duplicates::assume_unique{}, ferry::bounds::unchecked{});
  }
}

template <class Value, class Space, class Path>
void skipped_and_rejected(Path path) {
  auto random = generator(900);
  training<std::conditional_t<std::is_same_v<Value, double>, double, float>, Space> training_kit(random);
  const exec_space exec;
  const auto ids = unique_indices<std::int64_t>(random, n, rows);
  const ferry::step_count::per_row count;
  for (const bool nan : {true, false}) {
    const std::size_t position = 1 + random() % (n - 1), column = random() % width;
    // A later one, so that the first is the one that is told.
    const auto bad = make<ferry::device_space>(
        "grads", n, width, spoiled<Value>(random, {position * width + column, n * width - 1}, nan));
    const std::string how_many = position * width + column == n * width - 1 ? "1 of" : "2 of";
    const auto fine = make<ferry::device_space>("grads", n, width, values<Value>(random, n * width));
    each_way<Space>(path, ids, [&](const auto& named, auto... policies) {
      const auto steps = training_kit.state.steps(), skipped = training_kit.state.skipped();
      ferry::step(exec, rule, training_kit.table, training_kit.state, named, bad, count,
                  ferry::nonfinite::skip{}, policies...)
          .wait();
      CHECK(training_kit.state.steps() == steps);
      CHECK(training_kit.state.skipped() == skipped + 1);
      CHECK(training_kit.unchanged());
      fails<ferry::invalid_argument>(
          training_kit,
          [&] {
            ferry::step(exec, rule, training_kit.table, training_kit.state, named, bad, count,
                        ferry::nonfinite::reject{}, policies...)
                .wait();
          },
          {"ferry::step", "'weights' [12 x 37]", how_many, "column " + std::to_string(column),
           "position " + std::to_string(position)});
      // The next one is an ordinary step.
      ferry::step(exec, rule, training_kit.table, training_kit.state, named, fine, count,
                  ferry::nonfinite::skip{}, policies...)
          .wait();
      CHECK(training_kit.state.steps() == steps + 1);
      CHECK(training_kit.state.skipped() == skipped + 1);
      auto counts = training_kit.counts;
      for (const auto row : ids) ++counts[static_cast<std::size_t>(row)];
      CHECK(take(training_kit.state.row_steps()) == counts);
      const auto now = take(training_kit.table);
      for (std::size_t row = 0; row < rows; ++row) {
        bool moved = false;
        for (std::size_t c = 0; c < width; ++c)
          moved = moved || now[row * width + c] != training_kit.weights[row * width + c];
        CHECK(moved == (std::find(ids.begin(), ids.end(), static_cast<std::int64_t>(row)) != ids.end()));
      }
      training_kit.remember();
      ferry::step(exec, rule, training_kit.table, training_kit.state, named, fine, count,
                  ferry::nonfinite::reject{}, policies...)
          .wait();
      CHECK(training_kit.state.steps() == steps + 2);
      CHECK_FALSE(training_kit.unchanged());
      training_kit.remember();
    });
  }
}

TEMPLATE_TEST_CASE("steps with spoiled gradients are left out", "[optim][nonfinite]", ferry::device_space,
                   ferry::mapped_space, ferry::pageable_space) {
  if constexpr (std::is_same_v<TestType, ferry::mapped_space>)
    for_each_path<TestType, ferry::device_space, work::changes>(
        [](auto path) { skipped_and_rejected<float, TestType>(path); });
  else
    skipped_and_rejected<float, TestType>(ferry::path::automatic{});
}

TEST_CASE("a bad index wins over a spoiled gradient", "[optim][nonfinite]") {
  using space = ferry::mapped_space;
  auto random = generator(910);
  training<float, space> training_kit(random);
  const exec_space exec;
  auto ids = unique_indices<std::int64_t>(random, n, rows);
  ids[2] = 77;
  const auto grads = make<ferry::device_space>("grads", n, width, spoiled<float>(random, {3}, true));
  const auto plan = ferry::make_plan(exec, ids, rows);
  const ferry::step_count::per_row count;
  const std::vector<std::string> error{"index 77 at position 2"};
  for_each_path<space, ferry::device_space, work::changes>([&](auto path) {
    CAPTURE(path.name);
    const auto check = [&](auto policy) {
      CAPTURE(policy.name);
      const ferry::duplicates::assume_unique unique;
      fails<ferry::out_of_range>(
          training_kit,
          [&] {
            ferry::step(exec, rule, training_kit.table, training_kit.state, ids, grads, count, path, policy)
                .wait();
          },
          error);
      fails<ferry::out_of_range>(
          training_kit,
          [&] {
            ferry::step(exec, rule, training_kit.table, training_kit.state, plan, grads, count, path, policy)
                .wait();
          },
          error);
      fails<ferry::out_of_range>(
          training_kit,
          [&] {
            ferry::step(exec, rule, training_kit.table, training_kit.state, ids, grads, count, path, policy,
                        unique)
                .wait();
          },
          error);
    };
    check(ferry::nonfinite::skip{});
    check(ferry::nonfinite::reject{});
  });
}

}  // namespace ferry_test::nonfinite_test
