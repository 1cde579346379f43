// SPDX-License-Identifier: Apache-2.0
#include "optim/transform_kit.hpp"
#include "support/test.hpp"

namespace ferry_test::transforms_test {

// Several transforms around a rule, in two orders, in every host space and on every path.

constexpr std::size_t rows = 17, n = 23;

struct row_numbers {
  std::vector<float> factors;
  std::vector<std::uint8_t> mask;

  explicit row_numbers(std::mt19937_64& random) : factors(rows), mask(rows) {
    for (std::size_t row = 0; row < rows; ++row) {
      factors[row] = static_cast<float>(random() % 9) / 4.0f;  // 0 to 2
      mask[row] = static_cast<std::uint8_t>(row % 3 == 1 ? 1u + random() % 255u : 0u);
    }
  }
};

/// Takes eight steps of `chain` and of a model with plain transforms, and compares the results.
template <class Staged, class Model, class Table, class State, class Path, class Count>
void train(std::mt19937_64& random, Staged& chain, const plain_stages& transforms, Model& model, Table& table,
           State& state, std::size_t width, Path path, Count count) {
  const exec_space exec;
  const auto start = take(table);
  std::vector<std::int64_t> counts(rows, 0);
  for (int step = 1; step <= 8; ++step) {
    if (step == 5) chain.rule.lr *= 0.25;
    const auto batch = random_batch<double>(random, n, rows, width);
    const auto grads = make<ferry::device_space>("grads", n, width, batch.values);
    if (step % 2 == 0)
      ferry::step(exec, chain, table, state, ferry::make_plan(exec, batch.rows, rows), grads, path, count)
          .wait();
    else
      ferry::step(exec, chain, table, state, batch.rows, grads, path, count).wait();
    for (const auto& [row, gradient] : summed(batch, width)) {
      if (!transforms.leaves_out(row)) ++counts[row];
      step_with(transforms, model, chain.rule, Count::counts_rows ? counts[row] : step, row, gradient);
    }
  }
  const auto now = take(table);
  CHECK(farthest_apart(now, model.weights) < 1e-12);
  for (std::size_t i = 0; i < now.size(); ++i)
    if (transforms.leaves_out(i / width) && now[i] != start[i])
      FAIL_CHECK("frozen row " << i / width << " moved");
  if constexpr (Count::counts_rows) {
    const auto noted = take(state.row_steps());
    for (std::size_t row = 0; row < rows; ++row) CHECK(noted[row] == static_cast<std::uint32_t>(counts[row]));
  }
  CHECK(state.steps() == 8);
}

template <class Space, class Path>
void scaled_then_clipped(Path path, std::size_t width) {
  CAPTURE(Space::name, path.name, width);
  auto random = generator(400 + width);
  const row_numbers numbers(random);
  const auto factors = make<ferry::mapped_space>("factors", numbers.factors);
  const auto mask = make<ferry::mapped_space>("mask", numbers.mask);
  ferry::optim::chain chain{ferry::optim::adam{.lr = 0.1},    ferry::optim::grad_scale{8.0},
                            ferry::optim::clip_norm{2.0},     ferry::optim::clip_value{0.4},
                            ferry::optim::row_rates{factors}, ferry::optim::frozen_rows{mask},
                            ferry::optim::max_norm{20.0}};
  const plain_stages plain{{plain_grad_scale(8.0), plain_clip_norm(2.0), plain_clip_value(0.4)},
                           {numbers.factors.begin(), numbers.factors.end()},
                           numbers.mask,
                           20.0};
  const auto start = values<double>(random, rows * width);
  auto table = make<Space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(chain, table);
  plain_training<ferry::optim::adam, 2> model(chain.rule, start, width);
  train(random, chain, plain, model, table, state, width, path, ferry::step_count::per_row{});
  for (int f = 0; f < 2; ++f)
    CHECK(farthest_apart(take(state.field(f)), model.state[static_cast<std::size_t>(f)]) < 1e-12);
}

template <class Space, class Path>
void clipped_then_scaled(Path path, std::size_t width) {
  CAPTURE(Space::name, path.name, width);
  auto random = generator(500 + width);
  const row_numbers numbers(random);
  const std::vector<double> wide(numbers.factors.begin(), numbers.factors.end());
  const auto factors = make<ferry::mapped_space>("factors", wide);
  ferry::optim::chain chain{ferry::optim::sgd{.lr = 0.1, .momentum = 0.5}, ferry::optim::clip_value{6.0},
                            ferry::optim::clip_norm{9.0}, ferry::optim::grad_scale{4.0},
                            ferry::optim::row_rates{factors}};
  const plain_stages plain{
      {plain_clip_value(6.0), plain_clip_norm(9.0), plain_grad_scale(4.0)}, wide, {}, INFINITY};
  const auto start = values<double>(random, rows * width);
  auto table = make<Space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(chain, table);
  plain_training<ferry::optim::sgd, 1> model(chain.rule, start, width);
  train(random, chain, plain, model, table, state, width, path, ferry::step_count::global{});
  CHECK(farthest_apart(take(state.field(0)), model.state[0]) < 1e-12);
}

template <class Space, class Path>
void around_a_rule_of_rows(Path path, std::size_t width) {
  CAPTURE(Space::name, path.name, width);
  auto random = generator(600 + width);
  const row_numbers numbers(random);
  const auto factors = make<ferry::mapped_space>("factors", numbers.factors);
  const auto mask = make<ferry::mapped_space>("mask", numbers.mask);
  ferry::optim::chain chain{ferry::optim::rowwise_adagrad{.lr = 0.2, .weight_decay = 0.01},
                            ferry::optim::frozen_rows{mask},
                            ferry::optim::grad_scale{2.0},
                            ferry::optim::clip_norm{5.0},
                            ferry::optim::row_rates{factors},
                            ferry::optim::max_norm{15.0}};
  const plain_stages plain{{plain_grad_scale(2.0), plain_clip_norm(5.0)},
                           {numbers.factors.begin(), numbers.factors.end()},
                           numbers.mask,
                           15.0};
  const auto start = values<double>(random, rows * width);
  auto table = make<Space>("weights", rows, width, start);
  auto state = ferry::optim::make_state(chain, table);
  plain_rowwise_adagrad model(chain.rule, start, width);
  train(random, chain, plain, model, table, state, width, path, ferry::step_count::per_row{});
  CHECK(farthest_apart(take(state.field("sum")), model.sums) < 1e-12);
}

// Around packets, tiles and the places of a sum.
TEST_CASE("transforms before and after a rule, in their order", "[optim][transforms]") {
  const std::vector<std::size_t> widths{1, 3, 4, 35, 128, 131};
  for_each_path<ferry::mapped_space, ferry::device_space, work::changes>([&](auto path) {
    for (const std::size_t width : widths) scaled_then_clipped<ferry::mapped_space>(path, width);
  });
  for (const std::size_t width : widths) {
    clipped_then_scaled<ferry::mapped_space>(ferry::path::direct{}, width);
    clipped_then_scaled<ferry::pinned_space>(ferry::path::staged{}, width);
    around_a_rule_of_rows<ferry::mapped_space>(ferry::path::direct{}, width);
    around_a_rule_of_rows<ferry::pageable_space>(ferry::path::staged{}, width);
  }
}

// Every kind of array as what row_rates and frozen_rows read, of const elements and of others, in each space.

namespace transform_arrays {

using Catch::Matchers::StartsWith;

constexpr std::size_t rows = 7, width = 3;
const std::vector<int> named{5, 0, 2, 6};
const std::vector<float> factors{0.5F, 3.0F, 0.0F, 1.0F, 2.0F, 0.25F, -1.0F};
const std::vector<std::int32_t> mask{0, 1, 1, 0, 0, 0, -2};

/// One step of sgd with lr = 1, on weights of zero by gradients of 1, 2, 3, ...: a row's weights are minus its gradient, as
/// the transform changes it.
template <class Space, class Transform>
void steps_by(const Transform& transform, const std::vector<double>& share) {
  const exec_space exec;
  const ferry::optim::chain rule{ferry::optim::sgd{.lr = 1.0}, transform};
  ferry::tensor<float, Space> table("weights", rows, width);
  ferry::init::zeros(exec, table);
  auto state = ferry::optim::make_state(rule, table);
  std::vector<float> gradients(named.size() * width);
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<float>(i + 1);
  const auto grads = make<ferry::device_space>("grads", named.size(), width, gradients);
  ferry::step(exec, rule, table, state, named, grads).wait();
  std::vector<float> expected(rows * width, 0.0F);
  for (std::size_t p = 0; p < named.size(); ++p)
    for (std::size_t c = 0; c < width; ++c) {
      const auto row = static_cast<std::size_t>(named[p]);
      expected[row * width + c] = static_cast<float>(-share[row] * static_cast<double>(p * width + c + 1));
    }
  CHECK(take(table) == expected);
}

std::vector<double> shares_of_factors() { return {factors.begin(), factors.end()}; }
std::vector<double> shares_of_mask() {
  std::vector<double> shares;
  for (const auto frozen : mask) shares.push_back(frozen == 0 ? 1.0 : 0.0);
  return shares;
}

template <class T, class Space>
auto kokkos_view(T* data) {
  return Kokkos::View<T*, ferry::detail::kokkos_space_t<Space>, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
      data, rows);
}

/// Visits the array in each form that a tensor's memory can be given in.
template <class T, class Space, class Visit>
void for_each_form(ferry::tensor<T, Space>& array, const Visit& visit) {
  const auto& fixed = array;
  visit(array);
  visit(fixed);
  visit(ferry::tensor_view<T, Space>(array.data(), rows));
  visit(ferry::tensor_view<const T, Space>(array.data(), rows));
  visit(kokkos_view<T, Space>(array.data()));
  visit(kokkos_view<const T, Space>(array.data()));
}

TEMPLATE_TEST_CASE("transforms read arrays in every form of a space", "[optim][transforms]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  using table_space = std::conditional_t<std::is_same_v<TestType, ferry::device_space>, ferry::device_space,
                                         ferry::pinned_space>;
  auto rates = make<TestType>("rates", factors);
  for_each_form(rates, [](const auto& form) {
    steps_by<table_space>(ferry::optim::row_rates{form}, shares_of_factors());
  });
  auto frozen = make<TestType>("frozen", mask);
  for_each_form(frozen, [](const auto& form) {
    steps_by<table_space>(ferry::optim::frozen_rows{form}, shares_of_mask());
  });
}

TEST_CASE("transforms read vectors, spans and arrays of the language", "[optim][transforms]") {
  const auto walk = [](auto& numbers, const auto& visit) {
    using number = typename std::remove_cvref_t<decltype(numbers)>::value_type;
    std::array<number, rows> array{};
    number plain[rows];
    for (std::size_t row = 0; row < rows; ++row) array[row] = plain[row] = numbers[row];
    const auto fixed = array;
    auto copy = numbers;
    visit(numbers);
    visit(copy);
    visit(std::span<number>(copy));
    visit(std::span<const number>(copy));
    visit(std::span<number, rows>(array));
    visit(array);
    visit(fixed);
    visit(plain);
  };
  walk(factors, [](const auto& form) {
    steps_by<ferry::pageable_space>(ferry::optim::row_rates{form}, shares_of_factors());
  });
  walk(mask, [](const auto& form) {
    steps_by<ferry::pageable_space>(ferry::optim::frozen_rows{form}, shares_of_mask());
  });
}

TEST_CASE("verbs that catch up refuse a transform for another table", "[optim][transforms]") {
  const exec_space exec;
  const ferry::optim::adam adam;
  const ferry::optim::chain scaled{adam, ferry::optim::row_rates{factors}};
  const std::vector<float> few(factors.begin(), factors.end() - 2);
  const ferry::optim::chain wrong{adam, ferry::optim::row_rates{few}};
  ferry::tensor<float, ferry::pageable_space> table("weights", rows, width);
  ferry::init::constant(exec, table, 1);
  auto state = ferry::optim::make_state(scaled, table);
  ferry::tensor<float, ferry::pageable_space> out("out", 1, width);
  const std::vector<int> last{static_cast<int>(rows) - 1};
  // Before a row can be behind, and after.
  for (int turn = 0; turn < 3; ++turn) {
    const auto before = take(table);
    CHECK_THROWS_MATCHES(ferry::catch_up(exec, wrong, table, state), ferry::invalid_argument,
                         MessageMatches(StartsWith("ferry::catch_up: row_rates was given ") &&
                                        ContainsSubstring("[5]") && ContainsSubstring("'weights' [7 x 3]")));
    CHECK_THROWS_MATCHES(ferry::gather(exec, wrong, table, state, last, out), ferry::invalid_argument,
                         MessageMatches(StartsWith("ferry::gather: row_rates was given ") &&
                                        ContainsSubstring("'weights' [7 x 3]")));
    CHECK(take(table) == before);
    const std::vector<int> ids{turn};
    const auto grads = make<ferry::device_space>("grads", 1, width, std::vector<float>(width, 1.0F));
    ferry::step(exec, scaled, table, state, ids, grads, ferry::step_count::catch_up{}).wait();
  }
  ferry::catch_up(exec, scaled, table, state).wait();
}

}  // namespace transform_arrays

}  // namespace ferry_test::transforms_test
