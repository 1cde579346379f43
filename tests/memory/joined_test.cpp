// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

namespace ferry_test::joined_test {

TEST_CASE("joined writes texts and numbers", "[memory]") {
  using ferry::detail::joined;
  CHECK(joined("").empty());
  CHECK(joined("a", std::string("b"), std::string_view("c"), 1, -2, 0) == "abc1-20");
  CHECK(joined(std::numeric_limits<std::int64_t>::min()) ==
        std::to_string(std::numeric_limits<std::int64_t>::min()));
  CHECK(joined(std::numeric_limits<std::uint64_t>::max()) ==
        std::to_string(std::numeric_limits<std::uint64_t>::max()));
  auto next = generator(2);
  for (int i = 0; i < 100; ++i) {
    const auto number = static_cast<std::int64_t>(next() * 0x9e3779b97f4a7c15ull) >> (i % 64);
    CHECK(joined(number) == std::to_string(number));
    CHECK(joined(static_cast<std::int32_t>(number)) == std::to_string(static_cast<std::int32_t>(number)));
  }
}

}  // namespace ferry_test::joined_test
