// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

/// First values of sharded tables go by the numbers of the rows.
namespace ferry_test::init_test {

namespace {

/// An element's value by its place.
struct place_value {
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t i, std::int64_t j) const { return 100 * i + j; }
};

}  // namespace

TEST_CASE("a sharded table is initialised and copied by its row numbers", "[distributed]") {
  const watchdog guard("sharded init");
  auto random = generator(5);
  const exec_space exec;
  for (const int ranks : {1, 2, 4, 8})
    for_each_sharding([&](auto spread) {
      const std::size_t rows = random() % 300;  // also none, also fewer than ranks
      const auto comm = group_of(ranks);
      ferry::sharded_table<float, host, decltype(spread)> big("w", comm, rows, width, spread);
      std::int64_t rows_held = 0;
      for (int r = 0; r < ranks; ++r)
        for (std::int64_t i = 0; i < big.rows_of(r); ++i, ++rows_held) {
          const std::int64_t row = big.global_row(r, i);
          REQUIRE(big.local_row(row) == i);
          if (!decltype(spread)::replicates) REQUIRE(big.owner(row) == r);
        }
      REQUIRE(rows_held == static_cast<std::int64_t>(rows) * (decltype(spread)::replicates ? ranks : 1));
      const auto check = [&](const auto& fill) {
        ferry::tensor<float, host> table("w", rows, width);
        fill(table);
        fill(big);
        REQUIRE(same_table(exec, big, table));
        ferry::init::zeros(exec, big);
        comm.run([&] { fill(big); });
        REQUIRE(same_table(exec, big, table));
      };
      check([&](auto& table) { ferry::init::uniform(exec, table, -2, 3, 17); });
      check([&](auto& table) { ferry::init::normal(exec, table, 1, 3, 18); });
      check([&](auto& table) { ferry::init::constant(exec, table, 2.5); });
      check([&](auto& table) { ferry::init::custom(exec, table, place_value{}); });

      // To an array of all rows and back, by all ranks, and into a table of another sharding.
      ferry::tensor<float, host> table("w", rows, width);
      ferry::init::normal(exec, table, 0, 1, 19);
      comm.run([&](int rank) {
        ferry::copy(exec, table, big).wait();
        ferry::tensor<double, host> read("read", rank == 1 ? 0 : rows, width);
        ferry::copy(exec, big, read).wait();
        for (std::size_t i = 0; i < read.size(); ++i)
          expect(read.data()[i] == static_cast<double>(table.data()[i]), "copied rows");
      });
      ferry::sharded_table<float, host, ferry::sharding::hashed<3>> hashed("o", comm, rows, width);
      comm.run([&] { ferry::copy(exec, big, hashed).wait(); });
      REQUIRE(same_table(exec, hashed, table));
      const auto elsewhere = group_of(3);
      ferry::sharded_table<float, host, ferry::sharding::block> third("o", elsewhere, rows, width);
      ferry::copy(exec, hashed, third).wait();
      REQUIRE(same_table(exec, third, table));
    });
}

TEST_CASE("shards of halves that end within a packet are drawn as the whole table", "[distributed][init]") {
  const watchdog guard("sharded init of halves");
  const exec_space exec;
  const auto check = [&](const auto& table, const auto& big) { REQUIRE(same_table(exec, big, table)); };
  for (const int ranks : {1, 2, 3})
    for_each_sharding([&](auto spread) {
      const auto comm = group_of(ranks);
      for (const std::size_t columns : {1U, 4U, 6U, 12U})
        for (std::size_t rows = 0; rows < 24; ++rows) {
          INFO(ranks << " ranks, " << rows << " rows of " << columns << ", " << decltype(spread)::name);
          ferry::tensor<ferry::half_t, host> table("w", rows, columns);
          ferry::sharded_table<ferry::half_t, host, decltype(spread)> big("w", comm, rows, columns, spread);
          ferry::init::uniform(exec, table, -2, 3, 17);
          ferry::init::uniform(exec, big, -2, 3, 17);
          check(table, big);
          ferry::init::normal(exec, table, 0, 1, 18);
          ferry::init::normal(exec, big, 0, 1, 18);
          check(table, big);
        }
    });
}

TEST_CASE("a scramble keeps numbers behind the rows", "[distributed][init]") {
  for (std::int64_t rows = 1; rows < 300; ++rows)
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const ferry::kernels::row_scramble scramble(rows, seed);
      for (std::int64_t row = 0; row < 2 * rows; ++row) {
        const std::int64_t place = scramble.forward(row);
        REQUIRE((row < rows ? place >= 0 && place < rows : place == row));
        REQUIRE(scramble.backward(place) == row);
      }
    }
}

}  // namespace ferry_test::init_test
