// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace ferry_test::adopt_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEMPLATE_TEST_CASE("adopted memory is the user's, not a copy", "[adopt]", ferry::pinned_space,
                   ferry::pageable_space) {
  auto random = generator();
  auto memory = values<float>(random, 40 * 24);
  const auto before = memory;
  {
    auto table = ferry::adopt<TestType>(std::span<float>(memory), 40, 24);
    CHECK(table.data() == memory.data());
    CHECK(table.rows() == 40);
    CHECK(table.width() == 24);
    CHECK_THAT(table.describe(),
               ContainsSubstring("adopted") && ContainsSubstring(std::string(TestType::name)));

    const exec_space exec;
    const auto chosen = indices<std::int64_t>(random, 17, 40);
    ferry::tensor<float, ferry::device_space> batch("batch", 17, 24);
    ferry::gather(exec, table, chosen, batch).wait();
    const auto rows = take(batch);
    for (std::size_t p = 0; p < 17; ++p)
      for (std::size_t j = 0; j < 24; ++j)
        REQUIRE(rows[p * 24 + j] == memory[static_cast<std::size_t>(chosen[p]) * 24 + j]);

    const std::vector<std::int64_t> index{39};
    const auto fresh = make<ferry::device_space>("fresh", 1, 24, std::vector<float>(24, 77.0f));
    ferry::scatter(exec, table, index, fresh).wait();
    auto moved = std::move(table);
    CHECK(moved.data() == memory.data());
  }
  for (std::size_t i = 0; i < memory.size(); ++i) REQUIRE(memory[i] == (i < 39 * 24 ? before[i] : 77.0f));
  // Free for another tensor once the first one is gone.
  auto second = ferry::adopt<TestType>(std::span<float>(memory), 24, 40);
  CHECK(second.width() == 40);
}

TEMPLATE_TEST_CASE("adopt refuses extents that are not the memory's", "[adopt]", ferry::pinned_space,
                   ferry::pageable_space) {
  std::vector<float> memory(12);
  const std::span<float> span(memory);
  CHECK_THROWS_MATCHES(ferry::adopt<TestType>(span, 3, 5), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("12 elements") && ContainsSubstring("[3 x 5]")));
  CHECK_THROWS_AS(ferry::adopt<TestType>(span, 3, 3), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::adopt<TestType>(span, 13), ferry::invalid_argument);
  CHECK_THROWS_MATCHES(ferry::adopt<TestType>(span, -3, -4), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("-3") && ContainsSubstring("negative")));
  CHECK(ferry::adopt<TestType>(span, 2, 2, 3).rank() == 3);
  CHECK(ferry::adopt<TestType>(span, 12).rank() == 1);
}

TEMPLATE_TEST_CASE("nothing can be adopted", "[adopt]", ferry::pinned_space, ferry::pageable_space) {
  const auto none = ferry::adopt<TestType>(std::span<double>{}, 0, 8);
  CHECK(none.size() == 0);
  CHECK(none.width() == 8);
}

}  // namespace ferry_test::adopt_test
