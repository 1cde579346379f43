// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <ferry/distributed/sharded/detail/buckets.hpp>

#include <array>
#include <limits>
#include <vector>

/// Buckets that kernels make, against the owners that shardings name.
namespace ferry_test::buckets_test {

namespace {

using main_exec = Kokkos::DefaultExecutionSpace;
namespace detail = ferry::detail;

/// Sizes about the lengths of chunks, of what a thread reads at once, and of a block.
constexpr std::array<std::size_t, 17> sizes{0,  1,  7,  8,   9,   15,   16,   17,   31,
                                            33, 63, 65, 127, 129, 1023, 1025, 20001};

std::vector<std::int64_t> on_host(const main_exec& exec, const std::int64_t* list, std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  if (count != 0) ferry::copy(exec, detail::list_view<main_exec>(list, count), numbers).wait();
  return numbers;
}

/// Compares with groups of `rows`, those of the positions or -1. Each position has the slot of its item.
template <class Table>
void compare(const main_exec& exec, const Table& table, const detail::buckets& items,
             const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& slots) {
  const int ranks = items.everywhere ? 1 : table.comm().size();
  const auto place = on_host(exec, items.place, items.items());
  const auto local = on_host(exec, items.rows, items.items());
  std::vector<std::int64_t> begin{0}, expected_place, expected_local;
  for (int owner = 0; owner < ranks; ++owner) {
    for (std::size_t p = 0; p < rows.size(); ++p)
      if (rows[p] >= 0 && (items.everywhere || table.owner(rows[p]) == owner)) {
        expected_place.push_back(static_cast<std::int64_t>(p));
        expected_local.push_back(table.local_row(rows[p]));
      }
    begin.push_back(static_cast<std::int64_t>(expected_place.size()));
  }
  REQUIRE(items.begin == begin);
  REQUIRE(place == expected_place);
  REQUIRE(local == expected_local);
  std::vector<std::int64_t> expected_slots(rows.size(), -1);
  for (std::size_t k = 0; k < place.size(); ++k)
    expected_slots[static_cast<std::size_t>(place[k])] = static_cast<std::int64_t>(k);
  REQUIRE(slots == expected_slots);
}

template <class Index>
void check_indices(int ranks) {
  auto random = generator(301 + static_cast<std::uint64_t>(ranks));
  const main_exec exec;
  const auto comm = ferry::communicator::threads(ranks);
  for_each_sharding([&](auto spread) {
    const std::size_t rows = 300;
    const ferry::sharded_table<float, host, decltype(spread)> table("w", comm, rows, 1, spread);
    for (const std::size_t count : sizes) {
      INFO(ranks << " ranks, " << count << " positions, " << decltype(spread)::name);
      auto ids = indices<Index>(random, count, rows);
      const auto check = [&]<class Bounds>(Bounds) {
        std::vector<std::int64_t> expected;
        std::uint64_t bad = 0;
        for (const Index id : ids) {
          expected.push_back(Bounds::resolve(id, static_cast<std::int64_t>(rows)));
          bad += Bounds::reports && expected.back() < 0 ? 1 : 0;
        }
        const auto named = detail::read_only(ferry::make_ref(ids));
        const auto items = detail::bucket_rows<Bounds>("scatter", exec, table, named);
        const auto slots = detail::slots_of("gather", exec, items);
        REQUIRE(items.report.out_of_range == bad);
        compare(exec, table, items, expected, on_host(exec, slots.data(), items.positions));
        const auto plan = ferry::make_plan(exec, ids, rows, Bounds{});
        const auto planned = detail::bucket_rows<Bounds>("scatter", exec, table, plan);
        compare(exec, table, planned, expected, on_host(exec, slots.data(), items.positions));
        const auto different = detail::bucket_different_rows("scatter", exec, table, plan);
        const auto slots_of_rows = detail::slots_of("gather", exec, different, &plan);
        const auto slot = on_host(exec, slots_of_rows.data(), items.positions);
        const auto place = on_host(exec, different.place, different.items());
        const auto unique = on_host(exec, plan.template unique_rows<detail::near_space<main_exec>>().data(),
                                    plan.unique_count());
        REQUIRE(different.items() == plan.unique_count());
        for (std::size_t p = 0; p < slot.size(); ++p)
          REQUIRE((slot[p] < 0
                       ? -1
                       : unique[static_cast<std::size_t>(place[static_cast<std::size_t>(slot[p])])]) ==
                  expected[p]);
      };
      check(ferry::bounds::check{});
      if (count == 0) continue;
      for (int i = 0; i < 3; ++i)
        ids[random() % count] = random() % 2 == 0 ? static_cast<Index>(-1) : static_cast<Index>(rows + i);
      ids[random() % count] = std::numeric_limits<Index>::max();
      check(ferry::bounds::check{});
      check(ferry::bounds::clamp{});
      check(ferry::bounds::skip{});
    }
  });
}

}  // namespace

TEST_CASE("kernels put positions into buckets of their owners", "[distributed][route]") {
  for (const int ranks : {1, 2, 8, 17, 70}) check_indices<std::int64_t>(ranks);
  check_indices<std::int32_t>(5);
  check_indices<std::uint64_t>(2);
}

}  // namespace ferry_test::buckets_test
