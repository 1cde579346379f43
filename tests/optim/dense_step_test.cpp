// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/int8.hpp>

/// Steps of all rows: against plain loops in double, and bit by bit against steps that name each row once.
namespace ferry_test::dense_step_test {

/// The values of rows in another order: row p of the result is row order[p].
std::vector<float> permuted(const std::vector<float>& values, const std::vector<std::int64_t>& order,
                            std::size_t width) {
  std::vector<float> result;
  for (const std::int64_t row : order) {
    const auto first = values.begin() + row * static_cast<std::int64_t>(width);
    result.insert(result.end(), first, first + static_cast<std::int64_t>(width));
  }
  return result;
}

/// Two trainings from one start: `dense` steps all rows, `named` gives the same gradients by index.
template <class T, class Space, class Rule, class... Policies>
void compare(const Rule& rule, std::size_t rows, std::size_t width, Policies... policies) {
  CAPTURE(rows, width, Space::name);
  auto random = generator(1700 + rows * 64 + width);
  const exec_space exec;
  const auto start = values<float>(random, rows * width);
  ferry::tensor<T, Space> dense("dense", rows, width), named("named", rows, width);
  for (auto* table : {&dense, &named})
    ferry::copy(exec, make<ferry::device_space>("start", rows, width, start), *table).wait();
  auto state = ferry::optim::make_state(rule, dense), reference = ferry::optim::make_state(rule, named);
  state.set_seed(7);
  reference.set_seed(7);
  for (int turn = 0; turn < 4; ++turn) {
    const auto gradients = values<float>(random, rows * width);
    const auto order = unique_indices<std::int64_t>(random, rows, rows);
    const auto by_row = make<ferry::device_space>("grads", rows, width, gradients);
    const auto by_position =
        make<ferry::device_space>("grads", rows, width, permuted(gradients, order, width));
    const ferry::duplicates::assume_unique unique_policy;
    if (turn == 2) {  // a step of some rows in between
      const std::size_t count = (rows + 1) / 2;
      const std::vector<std::int64_t> some(order.begin(), order.begin() + static_cast<std::int64_t>(count));
      const auto few = make<ferry::device_space>("few", count, width, values<float>(random, count * width));
      ferry::step(exec, rule, dense, state, some, few, unique_policy, policies...).wait();
      ferry::step(exec, rule, named, reference, some, few, unique_policy, policies...).wait();
    }
    ferry::step(exec, rule, dense, state, by_row, policies...).wait();
    ferry::step(exec, rule, named, reference, order, by_position, unique_policy, policies...).wait();
    REQUIRE(state.steps() == reference.steps());
    REQUIRE(state.skipped() == reference.skipped());
    REQUIRE(same_bits(take(dense), take(named)));
    for (int f = 0; f < state.fields(); ++f)
      REQUIRE(same_bits(take(state.field(f)), take(reference.field(f))));
    for (int f = 0; f < decltype(state)::row_fields; ++f)
      REQUIRE(same_bits(take(state.row_field_at(f)), take(reference.row_field_at(f))));
    REQUIRE(take(state.row_steps()) == take(reference.row_steps()));
  }
}

/// Every path between two spaces against plain loops in double.
template <class Space, class GradSpace>
void follow_loops() {
  constexpr std::size_t rows = 37, width = 20;
  const ferry::optim::adam rule{.lr = 0.05, .weight_decay = 0.01};
  for_each_path<Space, GradSpace, work::changes>([&](auto path) {
    CAPTURE(Space::name, GradSpace::name, path.name);
    auto random = generator(1800);
    const exec_space exec;
    const auto start = values<float>(random, rows * width);
    auto table = make<Space>("weights", rows, width, start);
    auto state = ferry::optim::make_state(rule, table);
    plain_training<ferry::optim::adam, 2> loops(rule, start, width);
    for (std::int64_t step = 1; step <= 3; ++step) {
      const auto gradients = values<float>(random, rows * width);
      const auto grads = make<GradSpace>("grads", rows, width, gradients);
      ferry::step(exec, rule, table, state, grads, path).wait();
      for (std::size_t row = 0; row < rows; ++row)
        loops.step(rule, step, row,
                   std::vector<double>(gradients.begin() + static_cast<std::int64_t>(row * width),
                                       gradients.begin() + static_cast<std::int64_t>((row + 1) * width)));
      CHECK(state.steps() == step);
      CHECK(farthest_apart(take(table), loops.weights) < 2e-6);
      CHECK(farthest_apart(take(state.field(0)), loops.state[0]) < 2e-6);
      CHECK(farthest_apart(take(state.field(1)), loops.state[1]) < 2e-6);
    }
  });
}

TEST_CASE("a step of all rows follows plain loops on every path", "[optim][dense]") {
  follow_loops<ferry::device_space, ferry::device_space>();
  follow_loops<ferry::device_space, ferry::pageable_space>();
  follow_loops<ferry::mapped_space, ferry::device_space>();
  follow_loops<ferry::pageable_space, ferry::device_space>();
  follow_loops<ferry::pinned_space, ferry::pinned_space>();
}

TEST_CASE("a step of all rows has the bits of one that names each row once", "[optim][dense]") {
  for (const std::size_t rows : {1, 33, 200})
    for (const std::size_t width : {1, 7, 32}) {
      compare<float, ferry::device_space>(ferry::optim::sgd{.lr = 0.1, .momentum = 0.9}, rows, width,
                                          ferry::step_count::catch_up{});
      compare<float, ferry::mapped_space>(ferry::optim::rowwise_adagrad{.lr = 0.1}, rows, width);
      compare<ferry::bhalf_t, ferry::device_space>(ferry::optim::adam{.lr = 0.1}, rows, width,
                                                   ferry::rounding::stochastic{},
                                                   ferry::step_count::per_row{});
    }
}

TEST_CASE("transforms work in a step of all rows", "[optim][dense]") {
  const std::size_t rows = 45, width = 12;
  std::vector<float> rates(rows), frozen(rows);
  std::vector<std::uint8_t> mask(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    rates[r] = 0.5f + static_cast<float>(r) * 0.01f;
    mask[r] = r % 3 == 0;
  }
  const auto factors = make<ferry::mapped_space>("rates", rates);
  const auto frozen_mask = make<ferry::mapped_space>("frozen", mask);
  compare<float, ferry::device_space>(
      ferry::optim::chain(ferry::optim::sgd{.lr = 0.1}, ferry::optim::grad_scale(0.25),
                          ferry::optim::clip_norm(0.5), ferry::optim::row_rates(factors),
                          ferry::optim::frozen_rows(frozen_mask)),
      rows, width);
}

TEST_CASE("a step of all rows finds gradients that are not finite", "[optim][dense]") {
  constexpr std::size_t rows = 9, width = 5;
  auto random = generator(1900);
  const exec_space exec;
  const ferry::optim::sgd rule{.lr = 0.1};
  const auto start = values<float>(random, rows * width);
  auto table = make<ferry::device_space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  auto gradients = values<float>(random, rows * width);
  gradients[4 * width + 3] = std::numeric_limits<float>::infinity();
  const auto grads = make<ferry::device_space>("grads", rows, width, gradients);
  const auto text = said<ferry::error>(
      [&] { ferry::step(exec, rule, table, state, grads, ferry::nonfinite::reject{}).wait(); });
  CHECK_THAT(
      text, ContainsSubstring("'grads'") && ContainsSubstring("column 3") && ContainsSubstring("position 4"));
  CHECK(state.steps() == 0);
  ferry::step(exec, rule, table, state, grads, ferry::nonfinite::skip{}).wait();
  CHECK(state.skipped() == 1);
  CHECK(take(table) == start);
}

TEST_CASE("8-bit rows and records take a step of all rows", "[optim][dense]") {
  constexpr std::size_t rows = 21, width = 16;
  auto random = generator(2000);
  const exec_space exec;
  const ferry::optim::adam rule{.lr = 0.05};
  const auto start = make<ferry::device_space>("start", rows, width, values<float>(random, rows * width));
  const auto order = unique_indices<std::int64_t>(random, rows, rows);
  const auto gradients = values<float>(random, rows * width);
  const auto by_row = make<ferry::device_space>("grads", rows, width, gradients);
  const auto by_position = make<ferry::device_space>("grads", rows, width, permuted(gradients, order, width));
  const ferry::duplicates::assume_unique unique_policy;

  ferry::rowwise_int8_tensor<ferry::device_space> codes("codes", rows, width), named("named", rows, width);
  ferry::quantize(exec, start, codes).wait();
  ferry::quantize(exec, start, named).wait();
  auto state = ferry::optim::make_state(rule, codes), reference = ferry::optim::make_state(rule, named);
  for (int turn = 0; turn < 3; ++turn) {
    ferry::step(exec, rule, codes, state, by_row).wait();
    ferry::step(exec, rule, named, reference, order, by_position, unique_policy).wait();
  }
  CHECK(take(codes.records()) == take(named.records()));
  CHECK(same_bits(take(state.field(1)), take(reference.field(1))));

  auto records = ferry::optim::make_records<float, ferry::mapped_space>(rule, "records", rows, width);
  auto table = make<ferry::mapped_space>("weights", rows, width, take(start));
  auto moments = ferry::optim::make_state(rule, table);
  ferry::copy(exec, start, records.table()).wait();
  for (int turn = 0; turn < 3; ++turn) {
    ferry::step(exec, rule, records, by_row).wait();
    ferry::step(exec, rule, table, moments, by_row).wait();
  }
  ferry::tensor<float, ferry::mapped_space> weights("read", rows, width);
  ferry::copy(exec, records.table(), weights).wait();
  CHECK(same_bits(take(weights), take(table)));
}

TEST_CASE("a step of all rows names what does not fit", "[optim][dense]") {
  const exec_space exec;
  const ferry::optim::sgd rule{.lr = 0.1, .momentum = 0.9};
  ferry::tensor<float, ferry::mapped_space> table("weights", 6, 4), empty("empty", 0, 4);
  ferry::init::constant(exec, table, 1);
  auto state = ferry::optim::make_state(rule, table), none = ferry::optim::make_state(rule, empty);
  const ferry::tensor<float, ferry::mapped_space> few("few", 5, 4), narrow("narrow", 6, 3),
      nothing("nothing", 0, 4);
  CHECK_THAT(said<ferry::error>([&] { ferry::step(exec, rule, table, state, few).wait(); }),
             ContainsSubstring("ferry::step: without indices 'few' [5 x 4]") &&
                 ContainsSubstring("'weights' [6 x 4]"));
  CHECK_THAT(said<ferry::error>([&] { ferry::step(exec, rule, table, state, narrow).wait(); }),
             ContainsSubstring("'narrow' [6 x 3]") && ContainsSubstring("'weights' [6 x 4]"));
  CHECK_THAT(said<ferry::error>([&] { ferry::step(exec, rule, table, state, table).wait(); }),
             ContainsSubstring("overlap in memory"));
  CHECK_THAT(said<ferry::error>([&] { ferry::step(exec, rule, table, none, table).wait(); }),
             ContainsSubstring("'empty"));
  CHECK(state.steps() == 0);
  ferry::step(exec, rule, empty, none, nothing).wait();
  CHECK(none.steps() == 1);
  for (const float weight : take(table)) REQUIRE(weight == 1.0f);
}

}  // namespace ferry_test::dense_step_test
