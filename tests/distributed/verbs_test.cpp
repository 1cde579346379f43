// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <catch2/catch_template_test_macros.hpp>

namespace ferry_test::verbs_test {

namespace {

/// An element's value by its place.
struct place_value {
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t i, std::int64_t j) const { return 100 * i + j; }
};

/// A verb that writes, on a sharded table by several ranks and on an ordinary table by one batch.
template <class T, class Verb>
void compare(const Verb& verb, bool repeats = true) {
  const watchdog guard("sharded writes");
  auto random = generator(11);
  const exec_space exec;
  for (const int ranks : {1, 2, 4, 8})
    for_each_sharding([&](auto spread) {
      const std::size_t rows = 1 + random() % 150;
      INFO(ranks << " ranks, " << rows << " rows, " << decltype(spread)::name);
      const batches<T> batch(random, ranks, rows, 60, repeats);
      ferry::tensor<T, host> table("w", rows, width);
      const auto comm = group_of(ranks);
      ferry::sharded_table<T, host, decltype(spread)> big("w", comm, rows, width, spread);
      ferry::init::uniform(exec, table, -100, 100, 5);
      ferry::init::uniform(exec, big, -100, 100, 5);
      verb(exec, table, batch.rows, batch.whole);
      comm.run([&](int rank) { verb(exec, big, batch.indices_of(rank), batch.values_of(rank)); });
      REQUIRE(same_table(exec, big, table));
      // By one thread for the group, and by a plan of each kind.
      verb(exec, table, batch.rows, batch.whole);
      verb(exec, big, batch.rows, batch.whole);
      REQUIRE(same_table(exec, big, table));
      const auto plan = ferry::make_plan(exec, batch.rows, rows);
      verb(exec, table, plan, batch.whole);
      verb(exec, big, plan, batch.whole);
      REQUIRE(same_table(exec, big, table));
      verb(exec, table, plan, batch.whole);
      comm.run([&](int rank) {
        const auto mine = ferry::make_plan(exec, batch.indices_of(rank), big);
        verb(exec, big, mine, batch.values_of(rank));
      });
      REQUIRE(same_table(exec, big, table));
    });
}

}  // namespace

TEST_CASE("a sharded gather gives the rows of an ordinary table", "[distributed]") {
  const watchdog guard("sharded gather");
  auto random = generator(1);
  const exec_space exec;
  for (const int ranks : {1, 2, 4, 8})
    for_each_sharding_type([&](auto spread) {
      const std::size_t rows = 1 + random() % 200;
      INFO(ranks << " ranks, " << rows << " rows, " << decltype(spread)::name);
      batches<double, std::uint32_t> batch(random, ranks, rows, 90);
      ferry::tensor<float, host> table("w", rows, width);
      const auto comm = group_of(ranks);
      ferry::sharded_table<float, host, decltype(spread)> big("w", comm, rows, width, spread);
      ferry::init::normal(exec, table, 0, 3, 77);
      ferry::init::normal(exec, big, 0, 3, 77);
      ferry::tensor<double, host> expected("expected", batch.rows.size(), width);
      ferry::gather(exec, table, batch.rows, expected).wait();
      comm.run([&](int rank) {
        const auto& mine = batch.indices_of(rank);
        ferry::tensor<double, host> out("out", mine.size(), width), planned("out", mine.size(), width);
        ferry::gather(exec, big, mine, out).wait();
        expect(same_bits(out.data(), expected.data() + batch.at(rank) * width, out.size()), "rows");
        const auto plan = ferry::make_plan(exec, mine, big);
        expect(plan.positions() == static_cast<std::int64_t>(mine.size()), "positions");
        ferry::gather(exec, big, plan, planned).wait();
        expect(same_bits(out.data(), planned.data(), out.size()), "rows by the plan");
      });
      ferry::tensor<double, host> out("out", batch.rows.size(), width);
      ferry::gather(exec, big, batch.rows, out).wait();
      REQUIRE(same_bits(out.data(), expected.data(), out.size()));
      ferry::init::zeros(exec, out);
      ferry::gather(exec, big, ferry::make_plan(exec, batch.rows, rows), out).wait();
      REQUIRE(same_bits(out.data(), expected.data(), out.size()));
    });
}

TEST_CASE("a sharded scatter writes what an ordinary one does", "[distributed]") {
  compare<float>([](const auto& exec, auto& table, const auto& rows, const auto& values) {
    ferry::scatter(exec, table, rows, values).wait();
  });
  compare<double>([](const auto& exec, auto& table, const auto& rows, const auto& values) {
    ferry::scatter(exec, table, rows, values, ferry::duplicates::first{}).wait();
  });
  compare<ferry::half_t>([](const auto& exec, auto& table, const auto& rows, const auto& values) {
    ferry::scatter(exec, table, rows, values, ferry::duplicates::mean{}).wait();
  });
  compare<float>(
      [](const auto& exec, auto& table, const auto& rows, const auto& values) {
        ferry::scatter(exec, table, rows, values, ferry::duplicates::reject{}).wait();
        ferry::scatter(exec, table, rows, values, ferry::duplicates::assume_unique{}).wait();
      },
      false);
}

TEST_CASE("a sharded scatter_add sums in the order of ranks and positions", "[distributed]") {
  compare<float>([](const auto& exec, auto& table, const auto& rows, const auto& values) {
    ferry::scatter_add(exec, table, rows, values).wait();
  });
  compare<std::int32_t>([](const auto& exec, auto& table, const auto& rows, const auto& values) {
    ferry::scatter_add(exec, table, rows, values, ferry::duplicates::mean{}).wait();
  });
}

TEST_CASE("bounds policies mean the same on a sharded table", "[distributed]") {
  const watchdog guard("sharded bounds");
  auto random = generator(3);
  const exec_space exec;
  for (const int ranks : {1, 3, 8})
    for_each_sharding([&](auto spread) {
      const std::size_t rows = 1 + random() % 40;
      batches<float> batch(random, ranks, rows, 50);
      std::size_t p = 0;
      for (auto& mine : batch.rows_of)
        for (auto& index : mine) {
          if (random() % 4 == 0) index = static_cast<std::int64_t>(random() % 200) - 100;
          batch.rows[p++] = index;
        }
      const auto compare = [&](auto bounds) {
        ferry::tensor<float, host> table("w", rows, width), out("out", batch.rows.size(), width);
        const auto comm = group_of(ranks);
        ferry::sharded_table<float, host, decltype(spread)> big("w", comm, rows, width, spread);
        ferry::init::uniform(exec, table, -1, 1, 9);
        ferry::init::uniform(exec, big, -1, 1, 9);
        ferry::scatter_add(exec, table, batch.rows, batch.whole, bounds).wait();
        ferry::init::constant(exec, out, -7);
        ferry::gather(exec, table, batch.rows, out, bounds).wait();
        comm.run([&](int rank) {
          const auto& mine = batch.indices_of(rank);
          ferry::scatter_add(exec, big, mine, batch.values_of(rank), bounds).wait();
          ferry::tensor<float, host> read("out", mine.size(), width), planned("out", mine.size(), width);
          ferry::init::constant(exec, read, -7);
          ferry::init::constant(exec, planned, -7);
          ferry::gather(exec, big, mine, read, bounds).wait();
          expect(same_bits(read.data(), out.data() + batch.at(rank) * width, read.size()), "rows");
          ferry::gather(exec, big, ferry::make_plan(exec, mine, big, bounds), planned).wait();
          expect(same_bits(read.data(), planned.data(), read.size()), "rows by the plan");
        });
        REQUIRE(same_table(exec, big, table));
      };
      compare(ferry::bounds::clamp{});
      compare(ferry::bounds::skip{});
    });
}

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

}  // namespace ferry_test::verbs_test
