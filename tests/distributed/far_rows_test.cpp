// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <cstdint>
#include <vector>

/// A gather by a plan that reads far rows once. Which shards are far is made up here: one device has near ones
/// alone.
namespace ferry_test::far_rows_test {

namespace {

using main_exec = Kokkos::DefaultExecutionSpace;

struct place_value {
  KOKKOS_FUNCTION float operator()(std::int64_t i, std::int64_t j) const {
    return static_cast<float>(100 * i + j);
  }
};

/// Reads the shards by far_rows_once and far_rows_again. Returns the batch; its rows were -1 before.
template <class Out, class Table>
std::vector<float> gathered_with(const main_exec& exec, const Table& table, const ferry::row_plan& plan,
                                 std::uint64_t near) {
  const std::size_t n = static_cast<std::size_t>(plan.positions());
  ferry::tensor<Out, ferry::device_space> out("out", n, table.width());
  ferry::init::constant(exec, out, Out(-1));
  ferry::detail::launch_context<main_exec> of(exec, "gather");
  auto shards = ferry::detail::reach_shards(of, table);
  shards.near = near;
  ferry::detail::gather_far_rows_once(of, shards, *plan.storage(), ferry::make_ref(out));
  of.finish().wait();
  ferry::tensor<Out, host> there("there", n, table.width());
  ferry::copy(exec, out, there).wait();
  std::vector<float> values;
  for (std::size_t i = 0; i < there.size(); ++i) values.push_back(static_cast<float>(there.data()[i]));
  return values;
}

}  // namespace

TEST_CASE("a plan's far rows cross once, near rows are read for each position", "[distributed][peer]") {
  const watchdog guard("far rows");
  auto random = generator(84);
  const main_exec exec;
  for (const int ranks : {1, 2, 3, 8})
    for (const std::size_t columns : {std::size_t{1}, std::size_t{3}, std::size_t{32}, std::size_t{260}})
      for_each_sharding([&](auto spread) {
        const std::size_t rows = 1 + random() % 150;
        const auto comm = ferry::communicator::devices(std::vector<int>(static_cast<std::size_t>(ranks), 0),
                                                       {.deadline = std::chrono::seconds(30)});
        ferry::sharded_table<float, ferry::device_space, decltype(spread)> big("w", comm, rows, columns,
                                                                               spread);
        ferry::init::custom(exec, big, place_value{});
        auto which = indices<std::int64_t>(random, 1 + random() % 300, rows);
        which.front() = -1;  // has no row
        const auto plan = ferry::make_plan(exec, which, rows, ferry::bounds::skip{});
        std::vector<float> expected;
        for (const auto row : which)
          for (std::size_t j = 0; j < columns; ++j)
            expected.push_back(row < 0 ? -1.0f : place_value{}(row, static_cast<std::int64_t>(j)));
        for (const std::uint64_t near : {std::uint64_t{0}, ~std::uint64_t{0}, random(), random()}) {
          INFO(ranks << " ranks, " << rows << " x " << columns << ", " << decltype(spread)::name << ", near "
                     << near);
          CHECK(gathered_with<float>(exec, big, plan, near) == expected);
          CHECK(gathered_with<double>(exec, big, plan, near) == expected);
        }
      });
}

TEST_CASE("a far row is read by its first place alone", "[distributed][peer]") {
  // Rows 0, 0, 1, 1, 1, 3 of a table whose odd rows are near, and a place without a row.
  const std::vector<std::uint64_t> sorted{0, 0, 1, 1, 1, 3, 4};
  const std::vector<std::int64_t> order{2, 5, 0, 1, 6, 3, 4};
  const std::vector<std::int64_t> inverse{1, 1, 0, 2, -1, 0, 1};
  const std::vector<std::int64_t> begin{0, 2, 5, 6};
  const ferry::kernels::plan_of_shards<ferry::sharding::cyclic> plan{sorted.data(), order.data(), 7, 4, {}, 2,
                                                                     0b10};
  const ferry::kernels::far_rows_once<ferry::sharding::cyclic> once(plan);
  std::vector<std::int64_t> read(7, -1);
  std::int64_t reads = 0;
  for (std::int64_t i = 0; i < once.items(); ++i)
    if (const auto row = once.row(i, true); row >= 0) {
      ++reads;
      read[static_cast<std::size_t>(once.position(i))] = row;
    }
  CHECK(reads == 5);
  CHECK(read == std::vector<std::int64_t>{1, 1, 0, 3, -1, -1, 1});
  const ferry::kernels::far_rows_again<ferry::sharding::cyclic> again{plan, inverse.data(), begin.data()};
  for (std::int64_t k = 0; k < 7; ++k) CHECK(again.row(k, true) == (k == 1 ? 2 : -1));
  CHECK(again.position(1) == 5);
}

}  // namespace ferry_test::far_rows_test
