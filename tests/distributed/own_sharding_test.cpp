// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"
#include "support/folder.hpp"

#include <ferry/io.hpp>

#include <string_view>

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

/// Steps by 1, 2 and 4 ranks, against one table.
template <class T, class Rule, class... Policies>
void compare(std::uint64_t seed, const Rule& rule, Policies... policies) {
  const exec_space exec;
  auto random = generator(seed);
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    const auto comm = group_of(ranks);
    constexpr std::size_t rows = 37;
    ferry::tensor<T, host> table("w", rows, width);
    ferry::sharded_table<T, host, backward> big("w", comm, rows, width);
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
}

}  // namespace ferry_test::own_sharding_test
