#include "rowwise_int8.hpp"
#include "support/matrix.hpp"
#include "support/paths.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace ferry_test {
namespace {

template <class Out, class Space, class OutSpace>
void gather_int8_everywhere(std::mt19937_64& random, std::size_t rows, std::size_t width, std::size_t n) {
  const auto records = records_of(uneven_rows<float>(random, rows, width), width);
  const auto table = table_of<Space>(records, width);
  const auto numbers = as<Out>(values_of(records, width));
  const auto poison = values<Out>(random, n * width);
  const auto which = indices<std::int64_t>(random, n, rows);
  const auto expected = gathered(numbers, width, which, poison);
  const exec_space exec;
  const auto plan = ferry::make_plan(exec, which, rows);
  for_each_path<Space, OutSpace, work::moves>([&](auto path) {
    CAPTURE(Space::name, OutSpace::name, path.name, rows, width, n);
    auto out = make<OutSpace>("batch", n, width, poison);
    ferry::gather(exec, table, which, out, path).wait();
    CHECK(same_values(take(out), expected));
    auto by_plan = make<OutSpace>("batch", n, width, poison);
    ferry::gather(exec, table, plan, by_plan, path).wait();
    CHECK(same_values(take(by_plan), expected));
  });
}

}  // namespace

using int8_points = product<decltype(spaces), decltype(spaces)>;
TEMPLATE_LIST_TEST_CASE("gather from 8-bit tables, between every two spaces", "[int8][gather]", int8_points) {
  using space = at<0, TestType>;
  using out_space = at<1, TestType>;
  auto random = generator(101);
  for (const std::size_t width : {1u, 3u, 16u, 33u, 128u})
    for (const std::size_t n : {0u, 1u, 33u, 257u})
      gather_int8_everywhere<float, space, out_space>(random, 211, width, n);
  gather_int8_everywhere<float, space, out_space>(random, 500, 128, 30000);  // slots of the ring
}

using int8_float_points = product<decltype(floats), decltype(spaces)>;
TEMPLATE_LIST_TEST_CASE("gather from 8-bit tables to every float type", "[int8][gather]", int8_float_points) {
  using element = at<0, TestType>;
  using space = at<1, TestType>;
  auto random = generator(102);
  for (std::size_t width = 1; width < 20; ++width)
    gather_int8_everywhere<element, space, ferry::device_space>(random, 97, width, 130);
}

using int8_bounds_points = product<decltype(index_types), decltype(bounds), decltype(spaces)>;
TEMPLATE_LIST_TEST_CASE("gather from 8-bit tables with bad indices", "[int8][gather][bounds]",
                        int8_bounds_points) {
  using index = at<0, TestType>;
  using policy = at<1, TestType>;
  using space = at<2, TestType>;
  auto random = generator(103);
  const std::size_t rows = 61, width = 13, n = 57;
  const auto records = records_of(uneven_rows<float>(random, rows, width), width);
  const auto table = table_of<space>(records, width);
  auto which = indices<index>(random, n, rows);
  for (std::size_t p = 3; p < n; p += 5) which[p] = static_cast<index>(p % 2 == 0 ? -1 : 61);
  const auto poison = values<float>(random, n * width);
  const auto treat = std::is_same_v<policy, ferry::bounds::clamp> ? on_bad::clamp : on_bad::leave;
  const auto expected = gathered(as<float>(values_of(records, width)), width, which, poison, treat);
  const exec_space exec;
  const auto run = [&](auto out_space, const auto& indices_or_plan) {
    using target = decltype(out_space);
    for_each_path<space, target, work::moves>([&](auto path) {
      CAPTURE(space::name, target::name, path.name, policy::name);
      auto out = make<target>("batch", n, width, poison);
      auto ticket = ferry::gather(exec, table, indices_or_plan, out, path, policy{});
      if constexpr (policy::reports)
        CHECK_THROWS_MATCHES(ticket.wait(), ferry::out_of_range,
                             Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(
                                 "ferry::gather: 11 of 57 indices are outside of 'weights' [61 x 13]")));
      else
        CHECK_NOTHROW(ticket.wait());
      CHECK(same_values(take(out), expected));
    });
  };
  const auto plan = ferry::make_plan(exec, which, rows, policy{});
  run(ferry::device_space{}, which);
  run(ferry::pageable_space{}, which);
  run(ferry::pageable_space{}, plan);
  run(ferry::mapped_space{}, plan);
}

TEST_CASE("gather from 8-bit tables into rows that break alignment", "[int8][gather]") {
  auto random = generator(104);
  const std::size_t rows = 40, n = 23;
  const exec_space exec;
  for (const std::size_t width : {4u, 8u, 33u, 128u})
    for (const std::size_t offset : {0u, 1u, 2u, 3u, 4u}) {
      CAPTURE(width, offset);
      const auto records = records_of(uneven_rows<float>(random, rows, width), width);
      const auto table = table_of<ferry::device_space>(records, width);
      const auto which = indices<std::int32_t>(random, n, rows);
      const auto poison = values<ferry::half_t>(random, n * width + 8);
      auto memory = make<ferry::device_space>("memory", poison);
      ferry::gather(exec, table, which, view_at(memory, offset, n, width)).wait();
      auto expected = poison;
      const auto part = gathered(as<ferry::half_t>(values_of(records, width)), width, which,
                                 std::vector<ferry::half_t>(n * width));
      std::copy(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
      CHECK(same_values(take(memory), expected));
    }
}

TEST_CASE("gather from 8-bit tables refuses what does not fit", "[int8][gather][errors]") {
  const exec_space exec;
  ferry::rowwise_int8_tensor<ferry::device_space> table("weights", 10, 33);
  ferry::tensor<float, ferry::device_space> narrow("narrow", 2, 32), batch("batch", 2, 33);
  const std::vector<int> two{1, 2}, three{1, 2, 3};
  CHECK_THROWS_MATCHES(ferry::gather(exec, table, two, narrow), ferry::invalid_argument,
                       Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(
                           "rows of 'weights' [10 x 33] in device_space have 33 elements")));
  CHECK_THROWS_AS(ferry::gather(exec, table, three, batch), ferry::invalid_argument);
  const auto plan = ferry::make_plan(exec, two, 11);
  CHECK_THROWS_AS(ferry::gather(exec, table, plan, batch), ferry::invalid_argument);
}

}  // namespace ferry_test
