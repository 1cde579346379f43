// SPDX-License-Identifier: Apache-2.0
#include "rowwise_int8.hpp"
#include "support/matrix.hpp"
#include "support/test.hpp"

#include <ferry/int8.hpp>

namespace ferry_test::rowwise_int8_bounds_test {

// An index becomes a row before the paths part: each type and policy with one space.
using int8_bounds_points = rotated<decltype(axis<std::int32_t, std::uint64_t>), decltype(bounds),
                                   decltype(axis<ferry::device_space, ferry::pageable_space>)>;
TEMPLATE_LIST_TEST_CASE("gather from 8-bit tables with bad indices", "[int8][gather][bounds]",
                        int8_bounds_points) {
  using index = at<0, TestType>;
  using policy = at<1, TestType>;
  using space = at<2, TestType>;
  auto random = generator(103);
  const std::size_t rows = 61, width = 13, n = 57;
  const auto records = records_of(uneven_rows<float>(random, rows, width), width);
  const auto table = table_of<space>(records, width);
  auto ids = indices<index>(random, n, rows);
  for (std::size_t p = 3; p < n; p += 5) ids[p] = static_cast<index>(p % 2 == 0 ? -1 : 61);
  const auto poison = values<float>(random, n * width);
  const auto treat = std::is_same_v<policy, ferry::bounds::clamp> ? on_bad::clamp : on_bad::leave;
  const auto expected = gathered(as<float>(values_of(records, width)), width, ids, poison, treat);
  const exec_space exec;
  const auto run = [&](auto out_space, const auto& indices_or_plan) {
    using target = decltype(out_space);
    for_each_path<space, target, work::moves>([&](auto path) {
      CAPTURE(space::name, target::name, path.name, policy::name);
      auto out = make<target>("batch", n, width, poison);
      auto ticket = ferry::gather(exec, table, indices_or_plan, out, path, policy{});
      if constexpr (policy::reports)
        CHECK_THROWS_MATCHES(ticket.wait(), ferry::out_of_range,
                             MessageMatches(ContainsSubstring(
                                 "ferry::gather: 11 of 57 indices are outside of 'weights' [61 x 13]")));
      else
        CHECK_NOTHROW(ticket.wait());
      CHECK(same_values(take(out), expected));
    });
  };
  run(ferry::device_space{}, ids);
  if constexpr (std::is_signed_v<index>) {
    const auto plan = ferry::make_plan(exec, ids, rows, policy{});
    run(ferry::pageable_space{}, plan);
  } else {
    run(ferry::pageable_space{}, ids);
  }
}

TEST_CASE("gather from 8-bit tables refuses what does not fit", "[int8][gather][errors]") {
  const exec_space exec;
  ferry::rowwise_int8_tensor<ferry::device_space> table("weights", 10, 33);
  ferry::tensor<float, ferry::device_space> narrow("narrow", 2, 32), batch("batch", 2, 33);
  const std::vector<int> two{1, 2}, three{1, 2, 3};
  CHECK_THROWS_MATCHES(
      ferry::gather(exec, table, two, narrow), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("rows of 'weights' [10 x 33] in device_space have 33 elements")));
  CHECK_THROWS_AS(ferry::gather(exec, table, three, batch), ferry::invalid_argument);
  const auto plan = ferry::make_plan(exec, two, 11);
  CHECK_THROWS_AS(ferry::gather(exec, table, plan, batch), ferry::invalid_argument);
}

}  // namespace ferry_test::rowwise_int8_bounds_test
