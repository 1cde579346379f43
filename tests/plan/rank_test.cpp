// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"
#include "support/said.hpp"

#include <ferry/bags.hpp>
#include <ferry/tensor/kokkos.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

/// Indices of rank 2 are those of rank 1, row by row; results of rank 1 have it in their types.
namespace ferry_test::rank_test {

TEST_CASE("indices of rank 2 are read row by row", "[rank]") {
  const exec_space exec;
  auto random = generator(91);
  constexpr std::size_t rows = 30, width = 4, samples = 9, ids_of_sample = 3, n = samples * ids_of_sample;
  const auto start = values<float>(random, rows * width);
  const auto table = make<ferry::mapped_space>("table", rows, width, start);
  const auto listed = indices<std::int32_t>(random, n, rows);
  const auto line = make<ferry::mapped_space>("line", listed);
  const auto block = make<ferry::mapped_space>("block", samples, ids_of_sample, listed);
  auto batch = make<ferry::device_space>("batch", n, width, std::vector<float>(n * width, -1.0f));
  auto expected = make<ferry::device_space>("expected", n, width, std::vector<float>(n * width, -2.0f));
  ferry::gather(exec, table, line, expected).wait();
  ferry::gather(exec, table, block, batch).wait();
  CHECK(take(batch) == take(expected));
  CHECK(ferry::make_plan(exec, block, rows).positions() == static_cast<std::int64_t>(n));
  const auto rows_of_block = ferry::gather<ferry::mapped_space>(exec, table, block).get();
  CHECK(take(rows_of_block) == take(expected));

  auto line_table = make<ferry::mapped_space>("one", rows, width, start),
       block_table = make<ferry::mapped_space>("two", rows, width, start);
  ferry::scatter(exec, line_table, line, batch).wait();
  ferry::scatter(exec, block_table, block, batch).wait();
  ferry::scatter_add(exec, line_table, line, batch).wait();
  ferry::scatter_add(exec, block_table, block, batch).wait();
  const ferry::optim::sgd rule{.lr = 0.1};
  auto state = ferry::optim::make_state(rule, line_table),
       block_state = ferry::optim::make_state(rule, block_table);
  ferry::step(exec, rule, line_table, state, line, batch).wait();
  ferry::step(exec, rule, block_table, block_state, block, batch).wait();
  auto pooled =
      make<ferry::device_space>("pooled", samples, width, std::vector<float>(samples * width, -3.0f));
  auto sums = make<ferry::device_space>("sums", samples, width, std::vector<float>(samples * width, -4.0f));
  ferry::gather_bags(exec, line_table, line, 3, sums).wait();
  ferry::gather_bags(exec, block_table, block, 3, pooled).wait();
  ferry::step_bags(exec, rule, line_table, state, line, 3, sums).wait();
  ferry::step_bags(exec, rule, block_table, block_state, block, 3, sums).wait();
  CHECK(same_bits(take(sums), take(pooled)));
  CHECK(same_bits(take(line_table), take(block_table)));
}

TEST_CASE("arrays of rank 1 have it in their types", "[rank]") {
  const exec_space exec;
  const std::vector<std::int32_t> listed{7, 2, 7, 5};
  const auto result = ferry::unique(exec, listed, 10);
  const auto plan = ferry::make_plan(exec, listed, 10);
  STATIC_CHECK(decltype(ferry::to_kokkos(result.inverse))::rank() == 1);
  STATIC_CHECK(decltype(ferry::to_kokkos(result.counts))::rank() == 1);
  STATIC_CHECK(std::remove_cvref_t<decltype(result.rows)>::extents_type::rank == 1);
  STATIC_CHECK(decltype(plan.order())::extents_type::rank == 1);
  CHECK(result.inverse.rows() == 4);
  CHECK(result.rows.rows() == 3);

  auto matrix = make<ferry::mapped_space>("matrix", 3, 2, std::vector<float>{1, 2, 3, 4, 5, 6});
  const auto flat = matrix.flat();
  STATIC_CHECK(std::remove_cvref_t<decltype(flat)>::extents_type::rank == 1);
  CHECK(flat.rows() == 6);
  CHECK(flat.first(2).flat().rows() == 2);
  ferry::tensor<float, ferry::mapped_space> line("line", 6);
  ferry::copy(exec, flat, line).wait();
  CHECK(take(line) == std::vector<float>{1, 2, 3, 4, 5, 6});
  STATIC_CHECK(std::is_same_v<decltype(std::as_const(matrix).flat())::value_type, const float>);
}

}  // namespace ferry_test::rank_test
