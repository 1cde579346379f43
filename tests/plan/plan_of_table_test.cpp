// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

#include "support/arrays.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <vector>

namespace ferry_test::plan_of_table_test {

namespace {

const std::vector<std::int64_t> indices{7, 2, 7, 5};

void check(const ferry::row_plan& plan) {
  CHECK(plan.rows() == 9);
  CHECK(plan.positions() == 4);
  CHECK(plan.unique_count() == 3);
}

}  // namespace

TEST_CASE("a plan takes a table in place of the number of its rows", "[plan]") {
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 9, 4);
  check(ferry::make_plan(exec, indices, table));
  check(ferry::make_plan(exec, indices, table.rows_between(0, 9), ferry::bounds::skip{}));
  const ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", 9, 4);
  check(ferry::make_plan(exec, indices, codes));
  check(ferry::make_plan(
      exec, indices,
      ferry::optim::make_records<float, ferry::mapped_space>(ferry::optim::adam{}, "records", 9, 4)));
  CHECK(ferry::unique(exec, indices, table).rows.rows() == 3);
}

TEST_CASE("a plan in a workspace takes a table", "[plan]") {
  const exec_space exec;
  const ferry::tensor<float, ferry::mapped_space> table("table", 9, 4);
  const std::size_t bytes = ferry::plan_workspace_bytes(exec, 4, table);
  CHECK(bytes == ferry::plan_workspace_bytes(exec, 4, 9));
  ferry::tensor<std::byte, ferry::device_space> workspace("workspace", bytes);
  check(ferry::make_plan(exec, indices, table, workspace));
}

TEST_CASE("indices beyond the table of a plan are reported", "[plan]") {
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 7, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 4, 4);
  ferry::init::zeros(exec, table);
  const auto plan = ferry::make_plan(exec, indices, table);
  CHECK_THROWS_AS(ferry::gather(exec, table, plan, batch).wait(), ferry::out_of_range);
}

}  // namespace ferry_test::plan_of_table_test
