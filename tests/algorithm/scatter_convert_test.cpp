#include "support/arrays.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/paths.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

namespace ferry_test {

using conversion_points = product<decltype(elements), decltype(axis<float, ferry::half_t, double>)>;
TEMPLATE_LIST_TEST_CASE("scatter converts between number types", "[scatter]", conversion_points) {
  using T = at<0, TestType>;
  using V = at<1, TestType>;
  auto random = generator(22);
  const std::size_t rows = 31, n = 40, width = 12;
  const auto content = values<T>(random, rows * width);
  auto batch = values<V>(random, n * width);
  // Whole numbers: integer tables truncate each value, not the sum.
  for (auto& value : batch) value = V(std::trunc(number(value)));
  const auto which = indices<std::uint64_t>(random, n, rows);
  const exec_space exec;
  const auto run = [&](auto table_space, auto values_space, auto path) {
    const auto sources = make<decltype(values_space)>("values", n, width, batch);
    auto replaced = make<decltype(table_space)>("weights", rows, width, content);
    ferry::scatter(exec, replaced, which, sources, path).wait();
    CHECK(close(take(replaced), scattered(content, width, which, batch, false, "duplicates::last")));
    auto added = make<decltype(table_space)>("weights", rows, width, content);
    ferry::scatter_add(exec, added, which, sources, path).wait();
    CHECK(close(take(added), scattered(content, width, which, batch, true, "duplicates::sum")));
  };
  run(ferry::mapped_space{}, ferry::device_space{}, ferry::path::direct{});
  run(ferry::pageable_space{}, ferry::device_space{}, ferry::path::staged{});
  run(ferry::device_space{}, ferry::pageable_space{}, ferry::path::staged{});
}

TEST_CASE("sums and means of mixed number types keep their sign and their bits", "[scatter]") {
  const exec_space exec;
  const std::vector<int> which{1, 1, 0};
  // The sum passes the 24 bits of a float.
  const auto singles =
      make<ferry::device_space>("values", 3, 1, std::vector<float>{16777216.0f, 1.0f, -3.0f});
  auto whole = make<ferry::mapped_space>("weights", 2, 1, std::vector<std::int64_t>{5, 0});
  ferry::scatter_add(exec, whole, which, singles).wait();
  CHECK(take(whole) == std::vector<std::int64_t>{2, 16777217});
  const auto negative = make<ferry::device_space>("values", 3, 1, std::vector<std::int32_t>{-8, -4, 2});
  auto unsigned_table = make<ferry::mapped_space>("weights", 2, 1, std::vector<std::uint64_t>{10, 10});
  ferry::scatter_add(exec, unsigned_table, which, negative, ferry::duplicates::mean{}).wait();
  CHECK(take(unsigned_table) == std::vector<std::uint64_t>{12, 4});
}

}  // namespace ferry_test
