// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/int8.hpp>

/// Tables of extents [n x 0]: nothing moves, but what a verb says of rows and indices is the same as for any width.
namespace ferry_test::rows_without_elements_test {

constexpr std::size_t rows = 5;
const std::vector<int> good{0, 3, 1, 4}, bad{0, 5, 1, -1}, repeated{2, 0, 2, 4};

auto two_are_outside() { return MessageMatches(ContainsSubstring("2 of 4 indices are outside of")); }
auto a_row_is_repeated() { return MessageMatches(ContainsSubstring("duplicates::reject")); }

/// Every verb that writes, with bad and with repeated indices, given as they are and as a plan.
template <class Write>
void reports_as_any_other(const Write& write) {
  const exec_space exec;
  const auto plan_of = [&](const std::vector<int>& indices) { return ferry::make_plan(exec, indices, rows); };
  using ferry::duplicates::reject;
  CHECK_NOTHROW(write(good).wait());
  CHECK_NOTHROW(write(plan_of(good)).wait());
  CHECK_NOTHROW(write(good, reject{}).wait());
  CHECK_NOTHROW(write(repeated).wait());
  CHECK_NOTHROW(write(bad, ferry::bounds::skip{}, ferry::duplicates::assume_unique{}).wait());
  CHECK_THROWS_MATCHES(write(bad).wait(), ferry::out_of_range, two_are_outside());
  CHECK_THROWS_MATCHES(write(plan_of(bad)).wait(), ferry::out_of_range, two_are_outside());
  CHECK_THROWS_MATCHES(write(bad, ferry::duplicates::assume_unique{}).wait(), ferry::out_of_range,
                       two_are_outside());
  CHECK_THROWS_MATCHES(write(repeated, reject{}).wait(), ferry::invalid_argument, a_row_is_repeated());
  CHECK_THROWS_MATCHES(write(plan_of(repeated), reject{}).wait(), ferry::invalid_argument,
                       a_row_is_repeated());
}

template <class Table>
void gathers_report(const Table& table) {
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> batch("batch", good.size(), 0);
  const auto plan = ferry::make_plan(exec, bad, rows);
  CHECK_NOTHROW(ferry::gather(exec, table, good, batch).wait());
  CHECK_NOTHROW(ferry::gather(exec, table, bad, batch, ferry::bounds::skip{}).wait());
  CHECK_THROWS_MATCHES(ferry::gather(exec, table, bad, batch).wait(), ferry::out_of_range, two_are_outside());
  CHECK_THROWS_MATCHES(ferry::gather(exec, table, plan, batch).wait(), ferry::out_of_range,
                       two_are_outside());
  auto arrived = ferry::gather<ferry::pinned_space>(exec, table, good);
  const auto got = arrived.get();
  CHECK(got.rows() == good.size());
  CHECK(got.width() == 0);
  auto holes = ferry::gather<ferry::pinned_space>(exec, table, bad, ferry::bounds::skip{});
  CHECK(holes.get().rows() == bad.size());
  auto lost = ferry::gather<ferry::device_space>(exec, table, bad);
  CHECK_THROWS_MATCHES(lost.get(), ferry::out_of_range, two_are_outside());
  auto lost_by_plan = ferry::gather<ferry::device_space>(exec, table, plan);
  CHECK_THROWS_MATCHES(lost_by_plan.get(), ferry::out_of_range, two_are_outside());
}

TEMPLATE_TEST_CASE("gathers of rows without elements report bad indices", "[errors][no_elements]",
                   ferry::device_space, ferry::pageable_space) {
  gathers_report(ferry::tensor<float, TestType>("table", rows, 0));
  gathers_report(ferry::rowwise_int8_tensor<TestType>("codes", rows, 0));
}

TEST_CASE("scatters of rows without elements report bad and repeated indices", "[errors][no_elements]") {
  const exec_space exec;
  const ferry::tensor<float, ferry::device_space> batch("batch", good.size(), 0);
  ferry::tensor<float, ferry::device_space> near("table", rows, 0);
  reports_as_any_other([&](const auto& indices, auto... policies) {
    return ferry::scatter(exec, near, indices, batch, policies...);
  });
  ferry::tensor<float, ferry::pageable_space> far("table", rows, 0);
  reports_as_any_other([&](const auto& indices, auto... policies) {
    return ferry::scatter_add(exec, far, indices, batch, ferry::path::staged{}, policies...);
  });
  ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", rows, 0);
  reports_as_any_other([&](const auto& indices, auto... policies) {
    return ferry::scatter(exec, codes, indices, batch, policies...);
  });
}

TEST_CASE("steps on rows without elements report bad and repeated indices", "[optim][no_elements]") {
  const exec_space exec;
  const ferry::tensor<float, ferry::device_space> grads("grads", good.size(), 0);
  const ferry::optim::rowwise_adagrad rule;
  ferry::tensor<float, ferry::mapped_space> table("table", rows, 0);
  auto state = ferry::optim::make_state(rule, table);
  CHECK_NOTHROW(ferry::step(exec, rule, table, state, repeated, grads).wait());
  CHECK_THROWS_MATCHES(ferry::step(exec, rule, table, state, bad, grads).wait(), ferry::out_of_range,
                       two_are_outside());
  CHECK(take(state.row_field_at(0)) == std::vector<float>(rows, 0.0F));

  ferry::rowwise_int8_tensor<ferry::device_space> codes("codes", rows, 0);
  const ferry::optim::sgd plain;
  auto of_codes = ferry::optim::make_state(plain, codes);
  reports_as_any_other([&](const auto& indices, auto... policies) {
    return ferry::step(exec, plain, codes, of_codes, indices, grads, ferry::step_count::per_row{},
                       policies...);
  });
  // Counted by the four good batches and by the bad one's two good rows, which bounds::skip leaves.
  CHECK(take(of_codes.row_steps()) == std::vector<std::uint32_t>{5, 4, 1, 3, 4});
}

}  // namespace ferry_test::rows_without_elements_test
