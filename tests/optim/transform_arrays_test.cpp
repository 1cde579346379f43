// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/paths.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Every kind of array as what row_rates and frozen_rows read, of const elements and of others, in each space.
namespace ferry_test::transform_arrays_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::StartsWith;

namespace {

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

}  // namespace

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

}  // namespace ferry_test::transform_arrays_test
