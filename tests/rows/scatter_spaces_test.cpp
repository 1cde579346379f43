// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::scatter_spaces_test {

template <class T, class TableSpace, class ValuesSpace>
void scatter_everywhere(std::size_t rows, std::size_t width, std::size_t n) {
  auto random = generator(rows + width * 7 + n + 1);
  const auto content = values<T>(random, rows * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto batch = values<T>(random, n * width);
  const exec_space exec;
  const auto sources = make<ValuesSpace>("values", n, width, batch);
  const auto plan = ferry::make_plan(exec, ids, rows);
  for_covering_paths<TableSpace, ValuesSpace, work::moves>([&](auto path) {
    CAPTURE(TableSpace::name, ValuesSpace::name, path.name, rows, width, n);
    auto replaced = make<TableSpace>("weights", rows, width, content);
    ferry::scatter(exec, replaced, ids, sources, path).wait();
    CHECK(close(take(replaced), scattered(content, width, ids, batch, false, "duplicates::last")));
    if constexpr (!std::is_same_v<decltype(path), ferry::path::cooperative>) {
      auto added = make<TableSpace>("weights", rows, width, content);
      ferry::scatter_add(exec, added, plan, sources, path).wait();
      CHECK(close(take(added), scattered(content, width, ids, batch, true, "duplicates::sum")));
    }
  });
}

using scatter_points = product<decltype(spaces), decltype(spaces)>;
TEMPLATE_LIST_TEST_CASE("scatter and scatter_add between every two spaces", "[scatter]", scatter_points) {
  using table_space = at<0, TestType>;
  using values_space = at<1, TestType>;
  for (const std::size_t width : {1u, 3u, 4u, 33u, 128u})
    for (const std::size_t n : {0u, 1u, 31u, 33u, 257u})
      scatter_everywhere<float, table_space, values_space>(211, width, n);
}

using scatter_long_points =
    product<decltype(spaces), decltype(axis<ferry::device_space, ferry::pageable_space>)>;
TEMPLATE_LIST_TEST_CASE("scatter of long rows and of batches that fill the slots", "[scatter][once]",
                        scatter_long_points) {
  using table_space = at<0, TestType>;
  using values_space = at<1, TestType>;
  // A host fills no slots.
  constexpr bool on_host = ferry::HostExecutionSpace<exec_space>;
  constexpr std::size_t many = on_host ? 3000 : 30000;
  scatter_everywhere<float, table_space, values_space>(3, (std::size_t{1} << (on_host ? 17 : 20)) + 4, 3);
  scatter_everywhere<float, table_space, values_space>(many, 128, many);
}

}  // namespace ferry_test::scatter_spaces_test
