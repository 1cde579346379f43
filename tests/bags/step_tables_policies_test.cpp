// SPDX-License-Identifier: Apache-2.0
#include "bags/table_kit.hpp"
#include "support/matrix.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>

namespace ferry_test::step_tables_policies_test {

constexpr ferry::optim::adam adam{.lr = 0.05};
const std::vector<std::size_t> widths{4, 7, 64, 130, 1, 16};

/// A policy of the user's: rows are counted around.
struct around {
  using policy_category = ferry::bounds_category;
  static constexpr std::string_view name = "around";
  static constexpr bool reports = false;
  template <class Index>
  KOKKOS_FUNCTION static std::int64_t resolve(Index index, std::int64_t table_rows) {
    const auto rest = static_cast<std::int64_t>(index) % table_rows;
    return rest < 0 ? rest + table_rows : rest;
  }
};

template <class Rule, class Batch, class... More>
void check(const Rule& rule, const Batch& input, const More&... more) {
  check_same(stepped_one_by_one(rule, input, more...), stepped_together(rule, input, more...));
}

TEST_CASE("Steps of many tables count rows and round as steps of each") {
  auto random = generator(211);
  const table_batch<float> input(random, widths, 11);
  check(adam, input, ferry::step_count::per_row{});
  check(adam, input, input.weights, ferry::step_count::per_row{});
  check(adam, input, ferry::step_count::catch_up{});
  check(ferry::optim::rowwise_adagrad{.lr = 0.1}, input, ferry::step_count::per_row{});
  check(ferry::optim::sgd{.lr = 0.1, .momentum = 0.9}, input, ferry::pooling::sum{});
  check(ferry::optim::lamb{.lr = 0.1}, input);
  const table_batch<ferry::half_t> half(random, widths, 11);
  check(adam, half, ferry::rounding::stochastic{});
  check(ferry::optim::rowwise_adagrad{.lr = 0.1}, half, ferry::rounding::stochastic{});
  const table_batch<double> wide(random, widths, 11);
  check(adam, wide, ferry::pooling::sum{});
  const table_batch<ferry::bhalf_t, std::int64_t, double> wide_grads(random, widths, 11);
  check(adam, wide_grads);
}

TEST_CASE("Transforms of a step of many tables") {
  auto random = generator(212);
  const table_batch<float> input(random, widths, 11);
  using namespace ferry::optim;
  check(chain(ferry::optim::adam{.lr = 0.1}, clip_value{.limit = 0.25}), input);
  check(chain(ferry::optim::adam{.lr = 0.1}, clip_norm{.max_norm = 0.5}), input, ferry::pooling::sum{});
  check(chain(sgd{.lr = 0.1}, max_norm{.limit = 0.5}), input, input.weights);
}

TEMPLATE_TEST_CASE("Steps of many tables by indices of any type, under each bounds policy", "", std::int32_t,
                   std::int64_t, std::uint32_t, std::uint64_t) {
  auto random = generator(213);
  table_batch<float, TestType> input(random, widths, 11);
  // An index becomes a row before anything else: the other policies with one type.
  constexpr bool has_every_policy = std::is_same_v<TestType, std::int64_t>;
  check(adam, input);
  if constexpr (has_every_policy) check(adam, input, ferry::bounds::unchecked{}, ferry::pooling::sum{});
  for (std::size_t p = 0; p < input.ids.size(); p += 3)
    input.ids[p] = p % 2 == 0 ? static_cast<TestType>(-1) : static_cast<TestType>(500 + p);
  if constexpr (std::is_signed_v<TestType>)
    check(adam, input, ferry::bounds::clamp{});
  else
    check(adam, input, ferry::bounds::skip{});
  if constexpr (has_every_policy) {
    check(adam, input, ferry::bounds::skip{});
    check(adam, input, ferry::bounds::skip{}, ferry::pooling::sum{});
    check(adam, input, input.weights, ferry::bounds::skip{}, ferry::pooling::mean{});
    check(adam, input, around{});
  }
}

TEST_CASE("Rows with very many positions among many tables", "[once]") {
  auto random = generator(214);
  const table_batch<float> input(random, {8, 130, 64, 3, 16}, 60, {1, 2, 50, 3, 2000}, 40);
  check(adam, input);
  check(adam, input, input.weights, ferry::pooling::sum{});
  check(ferry::optim::rowwise_adagrad{.lr = 0.1}, input, input.weights);
  const table_batch<float> packed(random, {8, 128, 64, 4, 16}, 60, {1, 2, 50, 3, 2000}, 40);
  check(adam, packed);
  check(ferry::optim::rowwise_adagrad{.lr = 0.1}, packed);
  check(ferry::optim::sgd{.lr = 0.1}, packed, ferry::step_count::per_row{});
}

TEST_CASE("Tables without rows and batches without positions") {
  auto random = generator(215);
  const table_batch<float> input(random, {8, 5, 3, 4, 9}, 7, {0, 12, 0, 0, 3});
  check(adam, input);
  check(adam, input, ferry::bounds::clamp{});
  check(adam, input, ferry::step_count::per_row{});
  const table_batch<float> empty(random, {8, 5}, 7, {0, 0});
  check(adam, empty);
  table_batch<float> still(random, {8, 5}, 7, {3, 4}, 0);
  still.ids.clear();
  std::fill(still.offsets.begin(), still.offsets.end(), 0u);
  check(adam, still, ferry::step_count::per_row{});
  const table_batch<float> no_bags(random, {8, 5}, 0, {3, 4});
  check(adam, no_bags);
}

TEST_CASE("Bags of many tables by a number of positions, by open and by narrow offsets") {
  auto random = generator(216);
  const exec_space exec;
  table_batch<float> input(random, widths, 5);
  input.ids.clear();
  for (std::size_t b = 0; b <= widths.size() * 5; ++b) input.offsets[b] = 3 * b;
  for (std::size_t p = 0; p < input.offsets.back(); ++p)
    input.ids.push_back(static_cast<std::int64_t>(random() % 2));
  const auto expected = stepped_one_by_one(adam, input);
  const auto grads = make<ferry::device_space>("grads", input.batch, input.width, input.grads);
  const auto check_bags = [&](const auto& bags) {
    auto [tables, states] = tables_and_states<ferry::device_space, ferry::device_space>(adam, input);
    for (int s = 0; s < 2; ++s)
      ferry::step_bags(exec, adam, ferry::for_each_table(tables), states, input.ids, bags, grads).wait();
    check_same(expected, taken<float, float>(tables, states));
  };
  check_bags(3);
  check_bags(as_offsets<std::int32_t>(input.offsets));
  check_bags(make<ferry::device_space>("offsets", as_offsets<std::uint32_t>(input.offsets)));
  auto open = as_offsets<std::int64_t>(input.offsets);
  open.pop_back();
  check_bags(open);
}

TEST_CASE("States of many tables may have taken different numbers of steps, in any range") {
  auto random = generator(217);
  const exec_space exec;
  const table_batch<float> input(random, {8, 12}, 6);
  const auto grads = make<ferry::device_space>("grads", input.batch, input.width, input.grads);
  const auto result_of = [&](const auto& step) {
    auto [tables, states] = tables_and_states<ferry::device_space, ferry::device_space>(adam, input);
    states[1].set_steps(40);
    step(tables, states);
    CHECK(states[0].steps() == 1);
    CHECK(states[1].steps() == 41);
    return taken<float, float>(tables, states);
  };
  const auto expected = result_of([&](auto& tables, auto& states) {
    for (std::size_t t = 0; t < 2; ++t)
      ferry::step_bags(exec, adam, tables[t], states[t], input.part(input.ids, t), input.offsets_of(t),
                       make<ferry::device_space>("grads", input.batch, input.widths[t], input.grads_of(t)))
          .wait();
  });
  check_same(expected, result_of([&](auto& tables, auto& states) {
               std::span list(states);
               ferry::step_bags(exec, adam, ferry::for_each_table(tables), list, input.ids, input.offsets,
                                grads)
                   .wait();
             }));
  check_same(expected, result_of([&](auto& tables, auto& states) {
               std::array list{std::move(states[0]), std::move(states[1])};
               ferry::step_bags(exec, adam, ferry::for_each_table(tables[0], tables[1]), list, input.ids,
                                input.offsets, grads)
                   .wait();
               states[0] = std::move(list[0]);
               states[1] = std::move(list[1]);
             }));
}

TEST_CASE("The tables of one list are pooled and stepped") {
  auto random = generator(218);
  const exec_space exec;
  const table_batch<float> input(random, {8, 3}, 6);
  auto [tables, states] = tables_and_states<ferry::device_space, ferry::device_space>(adam, input);
  const auto list = ferry::for_each_table(tables);
  static_assert(!std::is_const_v<typename decltype(list)::value_type>);
  const auto& fixed = tables;
  static_assert(std::is_const_v<typename decltype(ferry::for_each_table(fixed))::value_type>);
  static_assert(std::is_const_v<typename decltype(ferry::for_each_table(tables[0], fixed[1]))::value_type>);
  ferry::tensor<float, ferry::device_space> out("pooled", 6, 11), second("pooled", 6, 11);
  ferry::gather_bags(exec, list, input.ids, input.offsets, out).wait();
  ferry::gather_bags(exec, ferry::for_each_table(fixed), input.ids, input.offsets, second).wait();
  CHECK(same_bits(take(out), take(second)));
  ferry::step_bags(exec, adam, list, states, input.ids, input.offsets, out).wait();
  CHECK_FALSE(same_bits(take(tables[1]), input.values[1]));
}

using table_spaces = ferry_test::zipped<decltype(ferry_test::spaces), decltype(ferry_test::spaces), 0, 1>;

TEMPLATE_LIST_TEST_CASE("Many tables, their states and gradients may lie in any space", "", table_spaces) {
  using space = at<0, TestType>;
  using grads_space = at<1, TestType>;
  if (!direct_runs<space>()) return;
  auto random = generator(219);
  const exec_space exec;
  const table_batch<float> input(random, widths, 11);
  const auto expected = stepped_one_by_one(adam, input);
  const auto grads = make<grads_space>("grads", input.batch, input.width, input.grads);
  const auto ids = make<grads_space>("ids", input.ids);
  const auto weights = make<grads_space>("weights", input.weights);
  const auto run = [&](const auto& rule, const auto&... more) {
    auto [tables, states] = tables_and_states<space, space>(rule, input);
    for (int s = 0; s < 2; ++s)
      ferry::step_bags(exec, rule, ferry::for_each_table(tables), states, ids, input.offsets, grads, more...)
          .wait();
    return taken<float, float>(tables, states);
  };
  check_same(expected, run(adam));
  const ferry::optim::rowwise_adagrad by_row{.lr = 0.1};
  check_same(stepped_one_by_one(by_row, input, input.weights, ferry::pooling::sum{}),
             run(by_row, weights, ferry::pooling::sum{}));
  check_same(stepped_one_by_one(adam, input, ferry::pooling::sum{}), run(adam, ferry::pooling::sum{}));
}

TEST_CASE("Columns of one array may be tables, and gradients part of a wider array") {
  auto random = generator(220);
  const exec_space exec;
  const table_batch<float> input(random, {8, 12}, 6, {20, 20});
  const auto expected = stepped_one_by_one(adam, input);
  using pairs = std::pair<std::size_t, std::size_t>;
  Kokkos::View<float**, Kokkos::LayoutRight, ferry::detail::kokkos_space_t<ferry::pinned_space>> array(
      "both", 20, 21),
      gradients("grads", 6, 23);
  for (std::size_t r = 0; r < 20; ++r)
    for (std::size_t c = 0; c < 20; ++c)
      array(r, c) = c < 8 ? input.values[0][r * 8 + c] : input.values[1][r * 12 + c - 8];
  for (std::size_t b = 0; b < 6; ++b)
    for (std::size_t c = 0; c < 20; ++c) gradients(b, c + 1) = input.grads[b * 20 + c];
  const auto first = Kokkos::subview(array, Kokkos::ALL, pairs(0, 8));
  const auto second = Kokkos::subview(array, Kokkos::ALL, pairs(8, 20));
  std::array states{ferry::optim::make_state<ferry::pinned_space>(adam, first),
                    ferry::optim::make_state<ferry::pinned_space>(adam, second)};
  for (int s = 0; s < 2; ++s)
    ferry::step_bags(exec, adam, ferry::for_each_table(first, second), states, input.ids, input.offsets,
                     Kokkos::subview(gradients, Kokkos::ALL, pairs(1, 21)))
        .wait();
  for (std::size_t r = 0; r < 20; ++r)
    for (std::size_t c = 0; c < 20; ++c)
      CHECK(array(r, c) == (c < 8 ? expected.tables[0][r * 8 + c] : expected.tables[1][r * 12 + c - 8]));
}

}  // namespace ferry_test::step_tables_policies_test
