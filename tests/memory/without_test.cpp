// SPDX-License-Identifier: Apache-2.0
#include "support/folder.hpp"

#include <ferry/memory/detail/backend.hpp>
#include "../../backends/cuda/tuning.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

/// Machines that are pretended, and tuning numbers of devices that nobody here has.
namespace ferry_test::without_test {

TEST_CASE("FERRY_WITHOUT is a list of words", "[without]") {
  const environment_variable list("FERRY_WITHOUT", nullptr);
  CHECK_FALSE(ferry::detail::without("managed"));
  list.set("");
  CHECK_FALSE(ferry::detail::without("managed"));
  list.set("managed");
  CHECK(ferry::detail::without("managed"));
  CHECK_FALSE(ferry::detail::without("manage"));
  CHECK_FALSE(ferry::detail::without("managed_more"));
  list.set("avx512,managed,pageable");
  for (const char* feature : {"avx512", "managed", "pageable"}) CHECK(ferry::detail::without(feature));
  CHECK_FALSE(ferry::detail::without("avx2"));
  CHECK_FALSE(ferry::detail::without("avx512,managed"));
  list.set(",pageable,");
  CHECK(ferry::detail::without("pageable"));
  CHECK_FALSE(ferry::detail::without("managed"));
}

TEST_CASE("tuning numbers follow the size of a device", "[without]") {
  using ferry::cuda::device_size;
  using ferry::cuda::tuning_for;
  constexpr std::int64_t mib = std::int64_t{1} << 20;
  const auto claims = [](device_size size) { return tuning_for(8, size).most_for_winners; };
  // An H200, an H100, an A100 and a T4 by their data sheets.
  CHECK(claims({132, 60 * mib}) == 2 * mib);
  CHECK(claims({132, 50 * mib}) == 2 * mib);
  CHECK(claims({108, 40 * mib}) == mib);
  CHECK(claims({40, 4 * mib}) == 128 * 1024);
  CHECK(tuning_for(8, {108, 40 * mib}).teams_that_search == 216);
  // The table of most claims, their slots and their indices fit the cache.
  for (const std::int64_t cache : {std::int64_t{1000}, 3 * mib, 24 * mib, 100 * mib})
    CHECK(claims({1, cache}) * (16 + 4 + 4) <= cache);
  // A driver that does not tell leaves what was measured.
  CHECK(claims({0, 0}) == ferry::cuda::hopper.most_for_winners);
  CHECK(tuning_for(9, {0, 0}).teams_that_search == ferry::cuda::hopper.teams_that_search);
  // Some batches are sorted by a grid, and some find winners in a table, on the pretended small device, too.
  CHECK(tuning_for(9, ferry::cuda::small_device).most_for_winners >
        tuning_for(9, ferry::cuda::small_device).least_for_winners);
}

}  // namespace ferry_test::without_test
