// SPDX-License-Identifier: Apache-2.0
#include "../../src/plan/sort_kernels.hpp"
#include "support/test.hpp"

/// A device's plan knows whether one of its rows has so many positions that kernels sum them in pieces.
namespace ferry_test::long_found_test {

namespace kernels = ferry::kernels;

/// The kernels of a plan, run by this thread in any order, for a row of each position; a row of 1000 is none.
void check_found(const std::vector<std::uint64_t>& rows, bool has_long) {
  CAPTURE(rows.size(), has_long);
  constexpr int position_bits = 20;
  const std::size_t n = rows.size();
  const auto positions = static_cast<std::int64_t>(n);
  std::vector<std::int64_t> row_of(n), counts{-7, -7, -7}, indices(rows.begin(), rows.end());
  kernels::any_row_keys key_of;
  key_of.indices = indices.data();
  key_of.rows = 1000;
  key_of.row_of = row_of.data();
  key_of.position_bits = position_bits;
  key_of.long_found = &counts[2];
  auto random = generator(n);
  std::vector<std::int64_t> threads(n);
  std::iota(threads.begin(), threads.end(), 0);
  std::shuffle(threads.begin(), threads.end(), random);
  std::vector<std::uint64_t> keys(n), begun(n);
  for (const std::int64_t i : threads) keys[static_cast<std::size_t>(i)] = key_of(i, true);
  CHECK(counts[2] == 0);
  std::sort(keys.begin(), keys.end());
  kernels::sorted_keys places{keys.data(), positions, 1000, position_bits};
  std::uint64_t sum = 0;
  for (std::size_t k = 0; k < n; ++k) begun[k] = sum += places(static_cast<std::int64_t>(k));
  std::vector<std::int64_t> order(n), unique(n), segments(n + 1), runs(n + 1), inverse(n);
  const kernels::write_segments place{places,          begun.data(), order.data(),   unique.data(),
                                      segments.data(), runs.data(),  inverse.data(), counts.data(),
                                      &counts[1],      &counts[2]};
  for (const std::int64_t k : threads) place.write(k, begun[static_cast<std::size_t>(k)]);
  CHECK(counts[2] == (has_long ? 1 : 0));
}

TEST_CASE("a plan finds out whether a row has 64 positions", "[plan]") {
  auto random = generator(3);
  const auto batch = [&](std::size_t often, std::size_t rest, std::size_t none) {
    std::vector<std::uint64_t> rows(often, 500);
    for (std::size_t i = 0; i < rest; ++i) rows.push_back(i < rest / 2 ? i : 600 + i % 300);
    rows.insert(rows.end(), none, 1000);
    std::shuffle(rows.begin(), rows.end(), random);
    return rows;
  };
  check_found(batch(1, 0, 0), false);
  for (const std::size_t rest : {0u, 1u, 70u, 600u})
    for (const std::size_t none : {0u, 3u, 100u}) {
      check_found(batch(63, rest, none), false);
      check_found(batch(64, rest, none), true);
      check_found(batch(65, rest, none), true);
      check_found(batch(3000, rest, none), true);
      if (rest + none != 0) check_found(batch(0, rest, none), false);
    }
}

}  // namespace ferry_test::long_found_test
