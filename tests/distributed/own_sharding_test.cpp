// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"
#include "support/folder.hpp"

#include <ferry/io.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string_view>
#include <type_traits>
#include <vector>

/// Shardings that users write.
namespace ferry_test::own_sharding_test {

/// Rank 0 has no rows, the others have theirs in cyclic order from the last row to the first.
struct backward {
  static constexpr std::string_view name = "backward";
  static constexpr bool replicates = false;
  void check(int) const {}
  [[nodiscard]] int owner(std::int64_t row, std::int64_t rows, int ranks) const {
    return ranks == 1 ? 0 : 1 + static_cast<int>((rows - 1 - row) % (ranks - 1));
  }
  [[nodiscard]] std::int64_t local_row(std::int64_t row, std::int64_t rows, int ranks) const {
    return (rows - 1 - row) / others(ranks);
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int ranks) const {
    if (ranks == 1) return rows;
    return rank == 0 ? 0 : (rows + others(ranks) - rank) / others(ranks);
  }
  [[nodiscard]] ferry::kernels::global_rows global_rows(int rank, std::int64_t rows, int ranks) const {
    return {rows - 1 - (ranks == 1 ? 0 : rank - 1), -others(ranks), {}};
  }

 private:
  static std::int64_t others(int ranks) { return ranks == 1 ? 1 : ranks - 1; }
};
static_assert(ferry::Sharding<backward>);

/// Shardings that are refused: each differs from `backward` in one member.
struct any_function : backward {
  struct reversed {
    std::int64_t rows;
    std::int64_t operator()(std::int64_t place) const { return rows - 1 - place; }
  };
  [[nodiscard]] reversed global_rows(int, std::int64_t rows, int) const { return {rows}; }
};
struct variable_fact : backward {
  static inline bool replicates = false;
};
struct variable_kernels : backward {
  static inline bool in_kernels = true;
};
struct wide_owner : backward {
  [[nodiscard]] std::int64_t owner(std::int64_t, std::int64_t, int) const { return 0; }
};
struct no_check : backward {
  void check(int) const = delete;
};
struct with_kernels : backward {
  static constexpr bool in_kernels = false;
};
static_assert(ferry::Sharding<with_kernels>);
static_assert(!ferry::Sharding<any_function>);
static_assert(!ferry::Sharding<variable_fact>);
static_assert(!ferry::Sharding<variable_kernels>);
static_assert(!ferry::Sharding<wide_owner>);
static_assert(!ferry::Sharding<no_check>);

namespace {

constexpr std::size_t rows = 37;

/// A sharding of `rows` rows over `ranks` ranks.
template <class Spread>
Spread spread_over(int ranks, std::mt19937_64& random) {
  if constexpr (std::is_same_v<Spread, ferry::sharding::dealt>) {
    std::vector<int> owners(rows);
    for (int& owner : owners) owner = static_cast<int>(random() % static_cast<unsigned>(ranks));
    return ferry::sharding::dealt(owners);
  } else {
    return {};
  }
}

/// Steps by 1, 2 and 4 ranks, against one table.
template <class T, class Spread = backward, class Rule, class... Policies>
void compare(std::uint64_t seed, const Rule& rule, Policies... policies) {
  const exec_space exec;
  auto random = generator(seed);
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    const auto comm = group_of(ranks);
    ferry::tensor<T, host> table("w", rows, width);
    ferry::sharded_table<T, host, Spread> big("w", comm, rows, width, spread_over<Spread>(ranks, random));
    for (std::int64_t row = 0; row < 37; ++row)
      REQUIRE(big.global_row(big.owner(row), big.local_row(row)) == row);
    ferry::init::uniform(exec, table, -1, 1, 5);
    ferry::init::uniform(exec, big, -1, 1, 5);
    REQUIRE(same_table(exec, big, table));
    auto state = ferry::optim::make_state(rule, table);
    auto shared = ferry::optim::make_state(rule, big);
    state.set_seed(3), shared.set_seed(3);
    const temporary_folder folder;
    for (int turn = 0; turn < 4; ++turn) {
      const batches<float> batch(random, ranks, rows, 12);
      ferry::step(exec, rule, table, state, batch.rows, batch.whole, policies...).wait();
      comm.run([&](int rank) {
        ferry::step(exec, rule, big, shared, batch.indices_of(rank), batch.values_of(rank), policies...)
            .wait();
        ferry::tensor<float, host> out("out", batch.indices_of(rank).size(), width);
        ferry::gather(exec, big, batch.indices_of(rank), out).wait();
        for (std::size_t p = 0; p < out.rows(); ++p)
          for (std::size_t c = 0; c < width; ++c)
            expect(out(p, c) ==
                       static_cast<float>(table(static_cast<std::size_t>(batch.indices_of(rank)[p]), c)),
                   "a gathered row");
        ferry::io::checkpoint run(folder.path() + "/run");
        run.add("w", big);
        run.add("rule", rule, shared);
        run.save();
      });
      REQUIRE(same_table(exec, big, table));
      ferry::scatter_add(exec, table, batch.rows, batch.whole).wait();
      comm.run([&](int rank) {
        ferry::scatter_add(exec, big, batch.indices_of(rank), batch.values_of(rank)).wait();
      });
      REQUIRE(same_table(exec, big, table));
    }
    // The table of the last save, in another sharding, and the state as an ordinary one.
    const auto small_group = group_of(3);
    ferry::sharded_table<T, host, ferry::sharding::hashed<3>> read("w", small_group, rows, width);
    auto read_state = ferry::optim::make_state(rule, read);
    small_group.run([&] {
      ferry::io::checkpoint run(folder.path() + "/run");
      run.add("w", read);
      run.add("rule", rule, read_state);
      run.load();
    });
    CHECK(read_state.steps() == 4);
    auto whole = ferry::optim::make_state(rule, table), whole_of_read = ferry::optim::make_state(rule, table);
    ferry::copy(exec, shared, whole).wait();
    ferry::copy(exec, read_state, whole_of_read).wait();
    for (int f = 0; f < state.fields(); ++f) {
      CHECK(same_bits(whole.field(f).data(), state.field(f).data(), state.field(f).size()));
      CHECK(same_bits(whole_of_read.field(f).data(), state.field(f).data(), state.field(f).size()));
    }
  }
}

}  // namespace

TEST_CASE("a sharding of one's own gives the bits of one table", "[distributed]") {
  const watchdog guard("own sharding");
  using namespace ferry::optim;
  compare<float>(81, adam{.lr = 0.1});
  compare<float>(82, adam{.lr = 0.1}, ferry::step_count::per_row{});
  // Random numbers and look-ups of a row go by its number in the whole table.
  compare<ferry::bhalf_t>(83, sgd{.lr = 0.1, .momentum = 0.9}, ferry::rounding::stochastic{});
  ferry::tensor<float, host> rates("rates", 37);
  for (std::size_t r = 0; r < 37; ++r) rates(r) = 0.5f + 0.125f * static_cast<float>(r % 5);
  compare<float>(84, chain{sgd{.lr = 0.1, .momentum = 0.9}, row_rates(rates)});
  using ferry::sharding::dealt;
  compare<float, dealt>(85, adam{.lr = 0.1}, ferry::step_count::per_row{});
  compare<ferry::bhalf_t, dealt>(86, sgd{.lr = 0.1, .momentum = 0.9}, ferry::rounding::stochastic{});
  compare<float, dealt>(87, chain{sgd{.lr = 0.1, .momentum = 0.9}, row_rates(rates)});
}

TEST_CASE("dealt rows lie on the ranks that an array, a function or the loads name", "[distributed]") {
  using ferry::sharding::dealt;
  auto random = generator(88);
  for (int turn = 0; turn < 20; ++turn) {
    const int ranks = 1 + static_cast<int>(random() % 5);
    const std::size_t count = random() % 60;
    std::vector<int> owners(count);
    for (int& owner : owners) owner = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const dealt by_array(owners);
    const dealt by_function(count, [&](std::int64_t row) { return owners[static_cast<std::size_t>(row)]; });
    CHECK(by_array.digest() == by_function.digest());
    by_array.check(ranks);
    std::vector<std::int64_t> next(static_cast<std::size_t>(ranks), 0);
    const auto total = static_cast<std::int64_t>(count);
    for (std::size_t row = 0; row < count; ++row) {
      const auto number = static_cast<std::int64_t>(row);
      const std::int64_t place = next[static_cast<std::size_t>(owners[row])]++;
      CHECK(by_function.owner(number, total, ranks) == owners[row]);
      CHECK(by_function.local_row(number, total, ranks) == place);
      CHECK(by_function.global_rows(owners[row], total, ranks)(place) == number);
    }
    for (int rank = 0; rank < ranks; ++rank)
      CHECK(by_array.rows_of(rank, total, ranks) == next[static_cast<std::size_t>(rank)]);
    if (count == 0) continue;
    auto changed = owners;
    changed[random() % count] += 1;
    CHECK(dealt(changed).digest() != by_array.digest());

    std::vector<double> loads(count);
    for (double& load : loads)
      load = static_cast<double>(random() % 1000) * (random() % 7 == 0 ? 100.0 : 1.0);
    const dealt by_load = dealt::by_load(loads, ranks);
    std::vector<double> sums(static_cast<std::size_t>(ranks), 0);
    for (std::size_t row = 0; row < count; ++row)
      sums[static_cast<std::size_t>(by_load.owner(static_cast<std::int64_t>(row), total, ranks))] +=
          loads[row];
    const auto [low, high] = std::minmax_element(sums.begin(), sums.end());
    CHECK(*high - *low <= *std::max_element(loads.begin(), loads.end()));
  }
  const std::vector<double> none(9, 0.0);
  CHECK(dealt::by_load(none, 3).rows_of(2, 9, 3) == 3);
}

TEST_CASE("dealt refuses what does not fit, by row and value", "[distributed]") {
  using ferry::sharding::dealt;
  const auto text = [](const auto& call) { return said<ferry::invalid_argument>(call); };
  CHECK(has(text([] { dealt(std::vector<int>{0, 1, -4}); }), "row 2 is dealt to rank -4"));
  CHECK(has(text([] {
              dealt(std::vector<int>{0, std::numeric_limits<int>::max(), 1});
            }),
            "row 1 is dealt to rank 2147483647, must be in [0, 1048576)"));
  CHECK(has(text([] {
              static_cast<void>(dealt::by_load(std::vector<double>{1, -2}, 2));
            }),
            "the load of row 1 is -2"));
  CHECK(has(text([] {
              static_cast<void>(dealt::by_load(std::vector<double>{1, 2}, 0));
            }),
            "there are 0 ranks"));
  const auto comm = group_of(2);
  using table = ferry::sharded_table<float, host, dealt>;
  CHECK(has(text([&] { table("w", comm, 3, 4); }), "no rows are dealt"));
  CHECK(has(text([&] {
              table("w", comm, 4, 4, dealt(std::vector<int>{0, 1, 1}));
            }),
            "3 rows are dealt, but the table has 4"));
  CHECK(has(text([&] {
              table("w", comm, 3, 4, dealt(std::vector<int>{0, 2, 1}));
            }),
            "row 1 is dealt to rank 2, which is none of the 2 ranks"));
  CHECK_THROWS_AS(comm.run([&](int rank) {
    table("w", comm, 2, 4, dealt(std::vector<int>{0, rank}));
  }),
                  ferry::protocol_error);
}

}  // namespace ferry_test::own_sharding_test
