// SPDX-License-Identifier: Apache-2.0
#include "distributed/routes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string_view>
#include <type_traits>
#include <vector>

/// Shardings that users write, and those that deal rows.
namespace ferry_test::own_sharding_test {

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
