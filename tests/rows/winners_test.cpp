// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.hpp"
#include "support/test.hpp"

/// The last and the first position of each row, found in a hash table and by the verb, against plain loops.
namespace ferry_test::winners_test {

/// winner[p] = the winner of the row of position p, -1 for none.
struct read_winners {
  ferry::kernels::winner_table table;
  const std::uint32_t* slot_of;
  std::int64_t* winner;
  std::int64_t* row;

  KOKKOS_FUNCTION void operator()(std::int64_t p) const {
    const bool none = slot_of[p] == ~std::uint32_t{0};
    winner[p] = none ? -1 : table.winner(slot_of[p]);
    row[p] = none ? -1 : table.row(slot_of[p]);
  }
};

using ferry::kernels::winner_table;

template <bool Last>
void check_winners(const std::vector<std::int64_t>& ids, std::int64_t rows) {
  const std::size_t n = ids.size();
  CAPTURE(n, rows, Last);
  REQUIRE(winner_table::fits(static_cast<std::int64_t>(n), rows));
  const int slot_bits = winner_table::slot_bits_for(static_cast<std::int64_t>(n));
  REQUIRE((std::size_t{1} << slot_bits) >= 2 * n);
  const exec_space exec;
  const std::size_t size = std::size_t{1} << slot_bits;
  const auto indices = make<ferry::device_space>("indices", ids);
  auto slots = make<ferry::device_space>("slots", std::vector<unsigned long long>(size, 0x1234567890ull));
  auto slot_of = make<ferry::device_space>("slot_of", std::vector<std::uint32_t>(n, 3));
  auto winner = make<ferry::device_space>("winner", std::vector<std::int64_t>(n, -5));
  auto row = make<ferry::device_space>("row", std::vector<std::int64_t>(n, -5));
  const winner_table table{slots.data(), slot_bits, static_cast<int>(std::bit_width(n - 1))};
  const auto run = [&](std::size_t count, const auto& kernel) {
    ferry::detail::launch(exec, "ferry_test::winners", static_cast<std::int64_t>(count), kernel);
  };
  run(size, ferry::kernels::clear_slots{slots.data()});
  run(n, ferry::kernels::compete_for_slots<ferry::execution_backend<exec_space>, std::int64_t,
                                           ferry::bounds::skip, Last>{
             {indices.data(), rows, {}}, table, slot_of.data()});
  run(n, read_winners{table, slot_of.data(), winner.data(), row.data()});
  exec.fence("ferry_test::winners");

  std::vector<std::pair<std::int64_t, std::int64_t>> named;
  for (std::size_t p = 0; p < n; ++p)
    if (ids[p] >= 0 && ids[p] < rows) named.emplace_back(ids[p], static_cast<std::int64_t>(p));
  std::sort(named.begin(), named.end());
  std::vector<std::int64_t> winners(n, -1), rows_named(n, -1);
  for (std::size_t i = 0; i < named.size(); ++i) {
    std::size_t last = i;
    if (Last)
      while (last + 1 < named.size() && named[last + 1].first == named[i].first) ++last;
    else
      while (last > 0 && named[last - 1].first == named[i].first) --last;
    winners[static_cast<std::size_t>(named[i].second)] = named[last].second;
    rows_named[static_cast<std::size_t>(named[i].second)] = named[i].first;
    if (named.size() > 5000 && named.front().first == named.back().first) {  // one row: no quadratic loop
      std::fill(winners.begin(), winners.end(), Last ? named.back().second : named.front().second);
      std::fill(rows_named.begin(), rows_named.end(), named.front().first);
      break;
    }
  }
  CHECK(take(winner) == winners);
  CHECK(take(row) == rows_named);
}

TEST_CASE("each row's winner in a hash table", "[scatter][winners]") {
  auto random = generator(91);
  const auto check = [](const std::vector<std::int64_t>& ids, std::int64_t rows) {
    check_winners<true>(ids, rows);
    check_winners<false>(ids, rows);
  };
  for (const std::size_t n : {1u, 2u, 33u, 1025u, 9000u}) {
    std::vector<std::int64_t> any(n), few(n), wide(n), apart(n);
    for (std::size_t p = 0; p < n; ++p) {
      any[p] = static_cast<std::int64_t>(random() % 50000) - 100;
      few[p] = static_cast<std::int64_t>(random() % 300);
      wide[p] = static_cast<std::int64_t>(random() % (std::uint64_t{1} << 48));
      apart[p] = static_cast<std::int64_t>(p) << 20;  // rows that differ in their upper bits alone
    }
    check(any, 49000);
    check(few, 300);
    check(wide, std::int64_t{1} << 48);
    check(apart, std::int64_t{1} << 40);
    check(std::vector<std::int64_t>(n, 0), 1);
    check(std::vector<std::int64_t>(n, 6), 7);
    check(std::vector<std::int64_t>(n, -1), 7);
  }
}

TEST_CASE("which batches a hash table takes", "[scatter][winners]") {
  CHECK(winner_table::slot_bits_for(1) == 1);
  CHECK(winner_table::slot_bits_for(4096) == 13);
  CHECK(winner_table::slot_bits_for(4097) == 14);
  CHECK(winner_table::fits(1, (std::int64_t{1} << 62)));
  CHECK(winner_table::fits(std::int64_t{1} << 30, std::int64_t{1} << 32));
  CHECK_FALSE(winner_table::fits((std::int64_t{1} << 30) + 1, 10));
  CHECK_FALSE(winner_table::fits(std::int64_t{1} << 20, std::int64_t{1} << 44));
}

TEMPLATE_TEST_CASE("large scatters keep the last value, or the first", "[scatter][winners][once]", float,
                   std::uint8_t) {
  auto random = generator(92);
  const exec_space exec;
  for (const std::size_t n : {4097u, 20001u})
    for (const std::size_t width : {1u, 3u, 16u, 33u}) {
      if (sizeof(TestType) == 1 && n * width > 100'000) continue;
      CAPTURE(n, width);
      const std::size_t rows = 6000;
      const auto content = values<TestType>(random, rows * width);
      const auto batch = values<TestType>(random, n * width);
      auto ids = indices<std::int32_t>(random, n, rows);
      for (std::size_t p = 5; p < n; p += 97) ids[p] = 17;
      const auto device = make<ferry::device_space>("values", n, width, batch);
      const auto run = [&](const auto& list, on_bad bad, auto duplicates, auto... policies) {
        CAPTURE(duplicates.name);
        auto table = make<ferry::device_space>("weights", rows, width, content);
        ferry::scatter(exec, table, list, device, duplicates, ferry::path::direct{}, policies...).wait();
        CHECK(close(take(table), scattered(content, width, list, batch, false, duplicates.name, bad)));
      };
      run(ids, on_bad::leave, ferry::duplicates::last{});
      run(ids, on_bad::leave, ferry::duplicates::first{});
      run(ids, on_bad::leave, ferry::duplicates::last{}, ferry::bounds::unchecked{});
      ids[n / 2] = static_cast<std::int32_t>(rows);
      ids[n / 3] = -2;
      run(ids, on_bad::leave, ferry::duplicates::last{}, ferry::bounds::skip{});
      run(ids, on_bad::clamp, ferry::duplicates::first{}, ferry::bounds::clamp{});

      auto weights = make<ferry::device_space>("weights", rows, width, content);
      CHECK_THROWS_MATCHES(
          ferry::scatter(exec, weights, ids, device).wait(), ferry::out_of_range,
          MessageMatches(ContainsSubstring("-2") && ContainsSubstring(std::to_string(n / 3))));
      CHECK(take(weights) == content);
    }
}

TEST_CASE("large scatters of one row, and of two instances at once", "[scatter][winners]") {
  auto random = generator(93);
  const std::size_t n = 50000, rows = 40000, width = 8;
  std::vector<exec_space> instances(2);
  if (exec_space{}.concurrency() > 1)
    instances = Kokkos::Experimental::partition_space(exec_space{}, std::vector<int>{1, 1});
  const auto batch = values<float>(random, n * width);
  const auto device = make<ferry::device_space>("values", n, width, batch);
  const std::vector<std::int64_t> alike(n, 39999);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto content = values<float>(random, rows * width);
  auto first_table = make<ferry::device_space>("one", rows, width, content);
  auto second_table = make<ferry::device_space>("other", rows, width, content);
  auto first = ferry::scatter(instances[0], first_table, alike, device);
  auto second = ferry::scatter(instances[1], second_table, ids, device);
  first.wait();
  second.wait();
  CHECK(close(take(first_table), scattered(content, width, alike, batch, false, "duplicates::last")));
  CHECK(close(take(second_table), scattered(content, width, ids, batch, false, "duplicates::last")));
}

}  // namespace ferry_test::winners_test
